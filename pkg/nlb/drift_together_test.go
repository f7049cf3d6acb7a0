package nlb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// longest is after what time drift is found at the latest.
const longest = driftPeriod*6/5 + driftWindow

// quietWorld is a world with Services that nothing happens to but drift detection.
type quietWorld struct {
	*world
	due map[string]time.Time
}

// inQuietWorld runs a test with Services that are served, and that were read since.
func inQuietWorld(t *testing.T, services []*corev1.Service, test func(t *testing.T, w *quietWorld)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		q := &quietWorld{world: w, due: map[string]time.Time{}}
		w.addNodes("n1", "n2", "n3")
		q.add(services...)
		test(t, q)
	}, func(cfg *cloud.Config) { cfg.Quotas.NLBs = 1000 })
}

// add adds Services, and waits until each was read.
func (w *quietWorld) add(services ...*corev1.Service) {
	w.t.Helper()
	for _, svc := range services {
		w.put(svc)
		w.fillServices()
		w.converge(svc.Name)
		w.due[svc.Name] = time.Now()
	}
	w.fillServices()
	w.forward(2 * longest)
}

// owners are Services with an NLB each.
func owners(n int, ports ...int32) []*corev1.Service {
	services := make([]*corev1.Service, n)
	for i := range services {
		services[i] = newService(fmt.Sprintf("web-%d", i), testkube.TCP(ports...), managed)
	}
	return services
}

// managed has the manager decide on some attributes.
func managed(svc *corev1.Service) {
	for suffix, value := range map[annotation.Suffix]string{
		annotation.DeleteProtection: "on", annotation.ProxyProtocol: "off", annotation.PreserveClientIP: "on", annotation.CrossZoneEnabled: "on",
	} {
		with(suffix, value)(svc)
	}
}

// sharers are Services of a group, with an NLB for fifty of them.
func sharers(n int) []*corev1.Service {
	services := make([]*corev1.Service, n)
	for i := range services {
		services[i] = grouped(fmt.Sprintf("web-%d", i), "edge", int64(i), testkube.TCP(int32(1000+i)), managed, with(annotation.GroupOverflow, "true")) //nolint:gosec // a port
	}
	return services
}

// forward lets time go by, with a pass over each Service when it is due, and returns the actions of each minute.
func (w *quietWorld) forward(d time.Duration) [][]string {
	w.t.Helper()
	w.calls()
	begin, minutes := time.Now(), make([][]string, int(d/time.Minute)+1)
	for {
		next := w.next()
		left := time.Until(w.due[next])
		if time.Since(begin)+left >= d {
			time.Sleep(d - time.Since(begin))
			return minutes
		}
		time.Sleep(left)
		w.pass(next)
		minute := int(time.Since(begin) / time.Minute)
		minutes[minute] = append(minutes[minute], w.calls()...)
	}
}

// next is the Service that is due next.
func (w *quietWorld) next() string {
	return slices.MinFunc(slices.Sorted(maps.Keys(w.due)), func(a, b string) int { return w.due[a].Compare(w.due[b]) })
}

// pass makes one pass, and notes when the next one is due.
func (w *quietWorld) pass(name string) {
	w.t.Helper()
	wait, err := w.Reconcile(w.t.Context(), w.get(name))
	if err != nil {
		w.t.Logf("%s: %v", name, err)
	}
	if err != nil || wait == 0 {
		wait = settle
	}
	w.due[name] = time.Now().Add(wait)
}

// wrote returns the writes of some minutes with how often each was made. One that found the NLB locked, because another Service of its
// group was due at the same time, is made again.
func wrote(minutes [][]string) map[string]int {
	found := map[string]int{}
	for _, action := range writes(slices.Concat(minutes...)) {
		if !strings.HasSuffix(action, "=Conflict.Lock") {
			found[action]++
		}
	}
	return found
}

// TestDriftIsReadTogether: many Services with a port cost at most 1.2 reads each in a period, evenly spread. Of several ports, each costs
// one.
func TestDriftIsReadTogether(t *testing.T) {
	t.Parallel()
	const hours = 1
	for i, test := range []struct {
		name     string
		services []*corev1.Service
		most     float64
	}{
		{"NLBs of their own", owners(50, 80), 1.2},
		{"a group", sharers(80), 1.2},
		{"three ports", owners(40, 80, 443, 8080), 3.5},
	} {
		if !testkit.Tried(i, 3) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inQuietWorld(t, test.services, func(t *testing.T, w *quietWorld) {
				minutes := w.forward(hours * time.Hour)
				total, most, actions := 0, 0, map[string]int{}
				for _, calls := range minutes {
					total, most = total+len(calls), max(most, len(calls))
					for _, action := range calls {
						actions[action]++
					}
				}
				each := float64(total) / float64(len(test.services)) / (hours * float64(time.Hour) / float64(driftPeriod))
				t.Attr("reads", fmt.Sprintf("%.2f", each))
				t.Logf("%d calls, %.2f per Service and period, at most %d in a minute: %v", total, each, most, actions)
				if each > test.most {
					t.Errorf("%.2f reads per Service and period, want at most %.1f", each, test.most)
				}
				if even := float64(total) / hours / 60; float64(most) > 5*even {
					t.Errorf("%d calls in one minute, %.1f on average", most, even)
				}
				if found := wrote(minutes); len(found) > 0 {
					t.Errorf("writes %v", found)
				}
			})
		})
	}
}

// spoiled is what somebody changes by hand on the NLB of a Service.
type spoiled struct {
	w        *quietWorld
	name     string
	lb       alicloud.NLB
	listener alicloud.NLBListener
	group    alicloud.NLBGroup
	servers  []alicloud.NLBServer
}

// spoil calls change for a Service, and waits for the job.
func (w *quietWorld) spoil(name string, change func(s spoiled) error) {
	w.t.Helper()
	api, ctx := w.account.Client, w.t.Context()
	s := spoiled{w: w, name: name, group: w.groups(name)[0]}
	s.lb = testkit.Must(api.GetNLB(ctx, s.group.LoadBalancers[0]))(w.t)
	for _, listener := range testkit.Must(api.ListNLBListeners(ctx, []string{s.lb.ID}))(w.t) {
		if *listener.ServerGroupID == s.group.ID {
			s.listener = listener
		}
	}
	s.servers = testkit.Must(api.ListNLBServers(ctx, s.group.ID))(w.t)
	testkit.Check(w.t, change(s))
	w.later(5 * settle)
}

func job(_ alicloud.Job, err error) error { return err }

// TestDriftIsRepairedInTime: what Services read together hides nothing for longer than a read of their own would.
func TestDriftIsRepairedInTime(t *testing.T) {
	t.Parallel()
	for row, test := range []struct {
		name  string
		spoil func(s spoiled) error
		want  map[string]int
		// once says that the Services of a group repair it together.
		once bool
	}{
		{name: "listener changed", want: map[string]int{"UpdateListenerAttribute": 1}, spoil: func(s spoiled) error {
			return job(s.w.account.Client.UpdateNLBListener(s.w.t.Context(), s.listener.ID, alicloud.NLBListenerSettings{ProxyProtocol: new(true)}))
		}},
		{name: "listener deleted", want: map[string]int{"CreateListener": 1}, spoil: func(s spoiled) error {
			return job(s.w.account.Client.DeleteNLBListener(s.w.t.Context(), s.listener.ID))
		}},
		{name: "server removed", want: map[string]int{"AddServersToServerGroup": 1}, spoil: func(s spoiled) error {
			return job(s.w.account.Client.RemoveNLBServers(s.w.t.Context(), s.group.ID, s.servers[:1]))
		}},
		{name: "all servers removed", want: map[string]int{"AddServersToServerGroup": 1}, spoil: func(s spoiled) error {
			return job(s.w.account.Client.RemoveNLBServers(s.w.t.Context(), s.group.ID, s.servers))
		}},
		{name: "server added", want: map[string]int{"RemoveServersFromServerGroup": 1}, spoil: func(s spoiled) error {
			extra := s.servers[0]
			extra.Port = 9
			return job(s.w.account.Client.AddNLBServers(s.w.t.Context(), s.group.ID, []alicloud.NLBServer{extra}))
		}},
		{name: "weight", want: map[string]int{"UpdateServerGroupServersAttribute": 1}, spoil: func(s spoiled) error {
			s.servers[0].Weight = 1
			return job(s.w.account.Client.UpdateNLBServers(s.w.t.Context(), s.group.ID, s.servers[:1]))
		}},
		{name: "server group", want: map[string]int{"UpdateServerGroupAttribute": 1}, spoil: func(s spoiled) error {
			return job(s.w.account.Client.UpdateNLBGroup(s.w.t.Context(), s.group.ID,
				alicloud.NLBGroupSettings{PreserveClientIP: new(!*s.group.PreserveClientIP)}))
		}},
		{name: "a second server group", want: map[string]int{"DeleteServerGroup": 1}, spoil: func(s spoiled) error {
			s.group.Name += "9"
			_, _, err := s.w.account.Client.CreateNLBGroup(s.w.t.Context(), s.group, s.name)
			return err
		}},
		{name: "deletion protection", once: true, want: map[string]int{"UpdateLoadBalancerProtection": 1}, spoil: func(s spoiled) error {
			return s.w.account.Client.ProtectNLB(s.w.t.Context(), s.lb.ID, alicloud.NLBProtection{Deletion: new(false)})
		}},
		{name: "tag of the NLB", once: true, want: map[string]int{"TagResources": 1}, spoil: func(s spoiled) error {
			return s.w.account.Client.UntagNLB(s.w.t.Context(), alicloud.NLBTagLoadBalancer, []string{s.lb.ID}, []string{s.lb.Tags[0].Key})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			kinds := []string{"own", "group"}
			for _, i := range testkit.Sample(row, len(kinds)) {
				kind, services := kinds[i], owners(8, 80)
				if kind == "group" {
					services = sharers(8)
				}
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					inQuietWorld(t, services, func(t *testing.T, w *quietWorld) {
						changed := []string{"web-1", "web-4", "web-6"}
						if test.once && kind == "group" {
							changed = changed[:1]
						}
						want := map[string]int{}
						for _, name := range changed {
							w.spoil(name, test.spoil)
							for action, n := range test.want {
								want[action] += n
							}
						}
						if found := wrote(w.forward(longest)); !maps.Equal(found, want) {
							t.Errorf("writes %v, want %v", found, want)
						}
						if found := wrote(w.forward(time.Hour)); len(found) > 0 {
							t.Errorf("afterwards it writes %v", found)
						}
					})
				})
			}
		})
	}
}
