//go:build linux && real

package real

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// smallQuota is how many backend servers a CLB may have in [TestQuotaBorder]: two ports of two machines.
const smallQuota = 4

// firstListener is the port of the listener that all requests of [TestQuotaBorder] go to.
const firstListener = 81

// TestQuotaBorder crosses the quota of backend servers of a CLB in both directions, while requests arrive: machines and ports come, so that only
// some machines can be backend servers of each port, and ports go, or the quota is raised, so that all can. No request fails.
func TestQuotaBorder(t *testing.T) {
	t.Cleanup(func() { setQuota(t, publishedQuota()) })
	setQuota(t, smallQuota)
	m := startManager(t)
	t.Cleanup(func() { forget(t, 3) })
	apply(t, pods)
	kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
	apply(t, listeners(1))
	vip, outside := vipOf(t, "border"), at(t, internetClient)
	url := fmt.Sprintf("http://%s:%d", vip, firstListener)
	behindPorts(t, vip, 2, 1)
	answersAlways(t, outside, url)
	requests := outside.stream(t, url)
	// ports gives the Service so many ports, each of which is to have so many machines as backend servers.
	ports := func(t *testing.T, count, machines int) {
		t.Helper()
		kubectl(t, listeners(count), "apply", "-f", "-")
		behindPorts(t, vip, machines, count)
		answers(t, outside, fmt.Sprintf("http://%s:%d", vip, firstListener+count-1))
	}

	for _, step := range []struct {
		name   string
		happen func(t *testing.T)
	}{
		{"a second port fits", func(t *testing.T) { ports(t, 2, 2) }},
		{"a machine joins that does not fit", func(t *testing.T) {
			join(t, 3, "vsw-b")
			nodeIs(t, nodeName(3), true)
			m.asks(t, 5)
			goOn(spell)
			behindPorts(t, vip, 2, 2)
		}},
		{"more ports leave one machine to each", func(t *testing.T) { ports(t, smallQuota, 1) }},
		{"another machine takes the place of the only one", func(t *testing.T) {
			excluded := behindPorts(t, vip, 1, smallQuota)[0]
			label(t, excluded, "node.kubernetes.io/exclude-from-external-load-balancers=")
			until(t, "another machine has its place", func(ctx context.Context) string {
				have, err := backends(ctx, vip)
				if err != nil || len(have) != smallQuota || strings.Contains(strings.Join(have, " "), excluded) {
					return fmt.Sprintf("backends are %v, %v", have, err)
				}
				return ""
			})
			label(t, excluded, "node.kubernetes.io/exclude-from-external-load-balancers-")
		}},
		{"ports go, and all machines fit", func(t *testing.T) { ports(t, 1, 3) }},
		{"all ports come at once", func(t *testing.T) { ports(t, smallQuota, 1) }},
		{"the quota is raised", func(t *testing.T) {
			setQuota(t, smallQuota*3)
			m.restart(t) // or it would take an hour until the quota is read
			behindPorts(t, vip, 3, smallQuota)
		}},
		{"the cloud refuses what the manager believed to fit", func(t *testing.T) {
			setQuota(t, publishedQuota())
			m.restart(t)
			m.asks(t, 5)
			goOn(spell)
			setQuota(t, smallQuota*3)
			ports(t, smallQuota+1, 2)
		}},
		{"ports go again", func(t *testing.T) { ports(t, 1, 3) }},
	} {
		_, before := requests.soFar()
		t.Run(step.name, step.happen)
		if _, after := requests.soFar(); after > before {
			t.Errorf("%s: %d requests failed", step.name, after-before)
		}
	}
	requests.wantNone()
}

// listeners is a Service with so many ports.
func listeners(count int) string {
	var ports []string
	for i := range count {
		ports = append(ports, fmt.Sprintf("{name: p%d, port: %d, targetPort: 8080}", i, firstListener+i))
	}
	return serviceOf("border", strings.Join(ports, ", "), "", "")
}

// publishedQuota is how many backend servers a CLB may have usually.
func publishedQuota() int { return cloud.Published().BackendsPerLB }

// setQuota changes how many backend servers a CLB may have.
func setQuota(t *testing.T, backends int) {
	t.Helper()
	order(t, http.MethodPut, "/_emulator/settings", fmt.Sprintf(`{"quotas":{"backendsPerLoadBalancer":%d}}`, backends))
}

// label changes a label of the Node of an instance.
func label(t *testing.T, instance, change string) {
	t.Helper()
	kubectl(t, "", "label", "node", strings.Replace(instance, "i-sandbox", "node-", 1), change)
}

// behindPorts waits until so many instances are behind an address, each in the groups of so many ports, and returns them.
func behindPorts(t *testing.T, vip string, instances, ports int) []string {
	t.Helper()
	var found []string
	until(t, fmt.Sprintf("each of %d ports has %d backends", ports, instances), func(ctx context.Context) string {
		have, err := backends(ctx, vip)
		if err != nil {
			return err.Error()
		}
		times := map[string]int{}
		for _, id := range have {
			times[id]++
		}
		found = nil
		for id, n := range times {
			if n == ports {
				found = append(found, id)
			}
		}
		if len(times) != instances || len(found) != instances {
			return fmt.Sprintf("they are %v", times)
		}
		return ""
	})
	return found
}
