//go:build linux && real

package real

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// smallQuota is how many backend servers a load balancer may have in [TestQuotaBorder]: two ports of two machines.
const smallQuota = 4

// firstListener is the port of the listener that all requests of [TestQuotaBorder] go to.
const firstListener = 81

// TestQuotaBorder crosses the quota of backend servers of a load balancer in both directions, while requests arrive: machines and ports
// come, so that only some machines can be backend servers of each port, and ports go, or the quota is raised, so that all can. No request
// fails.
func TestQuotaBorder(t *testing.T) {
	t.Cleanup(func() { setQuota(t, publishedQuotas()) })
	setQuota(t, smallQuotas(1))
	m := startManager(t)
	t.Cleanup(func() { forget(t, 3) })
	apply(t, pods)
	kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
	b := newBorders(t, at(t, internetClient))

	for _, step := range []struct {
		name   string
		happen func(t *testing.T)
	}{
		{"a second port fits", func(t *testing.T) { b.ports(t, 2, 2) }},
		{"a machine joins that does not fit", func(t *testing.T) {
			join(t, 3, "vsw-b")
			nodeIs(t, nodeName(3), true)
			m.asks(t, 5)
			goOn(spell)
			b.wait(t)
		}},
		{"another machine takes the place of one of two", func(t *testing.T) {
			clb, nlb := b[0].wait(t), b[1].wait(t)
			b.exclude(t, clb[slices.IndexFunc(clb, func(id string) bool { return slices.Contains(nlb, id) })])
		}},
		{"more ports of a CLB leave one machine to each", func(t *testing.T) { b[:1].ports(t, smallQuota, 1) }},
		// An NLB takes two calls, and none is there in between.
		{"another machine takes the place of the only one of a CLB", func(t *testing.T) { b.exclude(t, b[0].wait(t)[0]) }},
		{"ports go, and all machines fit", func(t *testing.T) { b.ports(t, 1, 3) }},
		{"all ports come at once", func(t *testing.T) { b.ports(t, smallQuota, 1) }},
		{"the quota is raised", func(t *testing.T) {
			setQuota(t, smallQuotas(3))
			m.restart(t) // or it would take an hour until the quota is read
			b.are(t, smallQuota, 3)
		}},
		{"the cloud refuses what the manager believed to fit", func(t *testing.T) {
			setQuota(t, publishedQuotas())
			m.restart(t)
			m.asks(t, 5)
			goOn(spell)
			setQuota(t, smallQuotas(3))
			b.ports(t, smallQuota+1, 2)
		}},
		{"ports go again", func(t *testing.T) { b.ports(t, 1, 3) }},
	} {
		before := b.failed()
		t.Run(step.name, step.happen)
		for i, after := range b.failed() {
			if after > before[i] {
				t.Errorf("%s: %d requests to the %s failed", step.name, after-before[i], b[i].name)
			}
		}
	}
	for _, one := range b {
		one.requests.wantNone()
	}
}

// border is a Service at the border of a quota, with a stream of requests to its first port.
type border struct {
	product
	shown     string
	addresses []string
	from      place
	requests  *stream
	// count ports each have so many machines as backend servers, or are about to.
	count, machines int
}

// borders has one of each product.
type borders []*border

// newBorders applies a Service of each product until the test ends.
func newBorders(t *testing.T, from place) borders {
	t.Helper()
	var all borders
	for _, p := range products {
		one := &border{product: p, from: from, count: 1, machines: nodeCount}
		apply(t, one.manifest())
		all = append(all, one)
	}
	for _, one := range all {
		one.shown = vipOf(t, "border-"+one.name)
		one.addresses = one.product.addresses(t, one.shown)
		one.wait(t)
		for _, url := range one.urls(0) {
			answersAlways(t, from, url)
		}
	}
	for _, one := range all {
		one.requests = from.stream(t, one.urls(0)...)
	}
	return all
}

func (b *border) manifest() string {
	var ports []string
	for i := range b.count {
		ports = append(ports, fmt.Sprintf("{name: p%d, port: %d, targetPort: 8080}", i, firstListener+i))
	}
	return b.service("border-"+b.name, strings.Join(ports, ", "), "")
}

// urls are those of a port at all addresses.
func (b *border) urls(port int) []string {
	var urls []string
	for _, address := range b.addresses {
		urls = append(urls, fmt.Sprintf("http://%s:%d", address, firstListener+port))
	}
	return urls
}

// wait waits until each port has as many machines as backend servers as it is to have, and none of these. It returns those it has.
func (b *border) wait(t *testing.T, excluded ...string) []string {
	t.Helper()
	var found []string
	until(t, fmt.Sprintf("each of %d ports of the %s has %d backends", b.count, b.name, b.machines), func(ctx context.Context) string {
		have, err := b.servers(ctx, b.shown)
		if err != nil {
			return err.Error()
		}
		times := map[string]int{}
		for _, id := range have {
			times[id]++
		}
		found = nil
		for id, n := range times {
			if n == b.count && !slices.Contains(excluded, id) {
				found = append(found, id)
			}
		}
		if len(times) != b.machines || len(found) != b.machines {
			return fmt.Sprintf("they are %v", times)
		}
		return ""
	})
	return found
}

// wait waits for all, see [border.wait].
func (b borders) wait(t *testing.T, excluded ...string) {
	t.Helper()
	for _, one := range b {
		one.wait(t, excluded...)
	}
}

// are waits until each of so many ports has so many machines as backend servers.
func (b borders) are(t *testing.T, count, machines int) {
	t.Helper()
	for _, one := range b {
		one.count, one.machines = count, machines
	}
	b.wait(t)
}

// ports gives the Services so many ports, each of which is to have so many machines as backend servers.
func (b borders) ports(t *testing.T, count, machines int) {
	t.Helper()
	manifests := ""
	for _, one := range b {
		one.count = count
		manifests += "---" + one.manifest()
	}
	kubectl(t, manifests, "apply", "-f", "-")
	b.are(t, count, machines)
	for _, one := range b {
		for _, url := range one.urls(count - 1) {
			answers(t, one.from, url)
		}
	}
}

// exclude has another machine take the place of one.
func (b borders) exclude(t *testing.T, instance string) {
	t.Helper()
	label(t, instance, "node.kubernetes.io/exclude-from-external-load-balancers=")
	b.wait(t, instance)
	label(t, instance, "node.kubernetes.io/exclude-from-external-load-balancers-")
}

// failed is how many requests to each have failed so far.
func (b borders) failed() []int {
	var counts []int
	for _, one := range b {
		_, failed := one.requests.soFar()
		counts = append(counts, failed)
	}
	return counts
}

// publishedQuotas are how many backend servers load balancers may have usually.
func publishedQuotas() cloud.Limits {
	published := cloud.Published()
	return cloud.Limits{BackendsPerLB: published.BackendsPerLB, ServersPerNLB: published.ServersPerNLB}
}

// smallQuotas let a load balancer have a few times the small quota.
func smallQuotas(times int) cloud.Limits {
	return cloud.Limits{BackendsPerLB: times * smallQuota, ServersPerNLB: times * smallQuota}
}

// setQuota changes how many backend servers load balancers may have.
func setQuota(t *testing.T, quotas cloud.Limits) {
	t.Helper()
	text, err := json.Marshal(map[string]cloud.Limits{"quotas": quotas})
	if err != nil {
		t.Fatal(err)
	}
	order(t, http.MethodPut, "/_emulator/settings", string(text))
}

// label changes a label of the Node of an instance.
func label(t *testing.T, instance, change string) {
	t.Helper()
	kubectl(t, "", "label", "node", "node-"+strings.TrimLeft(strings.TrimPrefix(instance, "i-sandbox"), "0"), change)
}
