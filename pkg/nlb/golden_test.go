package nlb

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// change is one change of a Service or of the cloud, and what comes of it.
type change struct {
	// do happens first; edit changes the Service after that.
	do   func(w *world)
	edit []func(*corev1.Service)
	// writes are the calls that change something, in any order: what does not depend on each other follows jobs as they end. Refused ones
	// end in their code. Nil compares nothing, none expects none. order are those of them that have to follow one another.
	writes, order []string
	// serves are the listeners with their servers, nil compares nothing.
	serves []string
	// says are parts of events.
	says []string
	// fails says that the pass ends with an error that the API server's user sees.
	fails bool
	check func(t *testing.T, w *world)
}

var none = []string{}

// life is that of one Service.
type life struct {
	name    string
	nodes   int
	service []func(*corev1.Service)
	cloud   func(*cloud.Config)
	// before happens before the Service is there.
	before  func(w *world)
	changes []change
	// restless says that a further pass is not quiet: something waits for the author of the Service or for time.
	restless bool
}

// create are the writes of a Service with one port.
var create = []string{"CreateLoadBalancer", "CreateServerGroup", "AddServersToServerGroup", "CreateListener"}

func runGolden(t *testing.T, cases []life) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var configs []func(*cloud.Config)
			if c.cloud != nil {
				configs = append(configs, c.cloud)
			}
			inWorld(t, func(t *testing.T, w *world) { c.run(t, w) }, configs...)
		})
	}
}

func (c *life) run(t *testing.T, w *world) {
	t.Helper()
	for i := range c.nodes {
		w.addNodes([]string{"n1", "n2", "n3", "n4"}[i])
	}
	if c.before != nil {
		c.before(w)
	}
	w.calls()
	for i := range c.changes {
		step := &c.changes[i]
		if step.do != nil {
			step.do(w)
			w.calls()
		}
		if i == 0 {
			w.put(newService("web", append(slices.Clone(c.service), step.edit...)...))
		} else if len(step.edit) > 0 {
			w.change("web", step.edit...)
		}
		if err := w.try("web"); (err != nil) != step.fails {
			t.Fatalf("change %d: %v", i, err)
		}
		step.verify(t, w, i)
	}
	if !c.restless {
		w.quiet("web")
	}
}

func (c *change) verify(t *testing.T, w *world, i int) {
	t.Helper()
	got := writes(w.calls())
	if diff := cmp.Diff(slices.Sorted(slices.Values(c.writes)), slices.Sorted(slices.Values(got))); c.writes != nil && diff != "" {
		t.Errorf("change %d: writes (-want +got):\n%s", i, diff)
	}
	at := -1
	for _, call := range c.order {
		next := slices.Index(got, call)
		if next <= at {
			t.Errorf("change %d: writes %v, want the order %v", i, got, c.order)
		}
		at = next
	}
	if c.serves != nil {
		if diff := cmp.Diff(c.serves, w.listeners(w.current("web"))); diff != "" {
			t.Errorf("change %d: listeners (-want +got):\n%s", i, diff)
		}
	}
	events := w.newEvents()
	mustReport(t, events, c.says...)
	if c.check != nil {
		c.check(t, w)
	}
	w.calls()
}

// current is the load balancer that a Service says it is on.
func (w *world) current(name string) string {
	w.t.Helper()
	return w.get(name).Labels["service.k8s.alibaba/loadbalancer-id"]
}

// edits are changes of a Service.
func edits(changes ...func(*corev1.Service)) []func(*corev1.Service) { return changes }

// ports sets the ports of a Service.
func ports(ports ...corev1.ServicePort) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.Ports = ports }
}

func tcpPort(port int32) corev1.ServicePort { return testkube.Port(port, corev1.ProtocolTCP) }
func udpPort(port int32) corev1.ServicePort { return testkube.Port(port, corev1.ProtocolUDP) }

// eni makes addresses of pods the backends.
func eni(svc *corev1.Service) { testkube.Annotation(annotation.BackendType, "eni")(svc) }
