package nlb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestErrorsTakeNothingAway: after an edit that leaves a port without what its backends need, what serves goes on to serve, and follows the
// endpoints.
func TestErrorsTakeNothingAway(t *testing.T) {
	t.Parallel()
	ranges := func(w *world) { w.pods("n1", "n2") }
	pods := edits(testkube.TCP(80), eni)
	typed := func(kind string) func(*corev1.Service) { return testkube.Annotation(annotation.BackendType, kind) }
	nodePort := func(port int32) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = port }
	}
	runGolden(t, []life{
		{name: "no endpoint, and a type that is not accepted, after a restart", nodes: 2, before: ranges, service: append(pods, nodePort(0)),
			restless: true, changes: []change{
				{writes: create},
				{do: func(w *world) { w.pods() }, writes: []string{"RemoveServersFromServerGroup"}},
				{do: func(w *world) { w.restart() }, edit: edits(typed("nodes")), writes: none, says: []string{"Warning InvalidAnnotation"}},
			}},
		{name: "no node port", nodes: 3, before: ranges, service: pods, restless: true, changes: []change{
			{writes: create, check: leadsTo("n1 n2")},
			{edit: edits(typed("ecs"), nodePort(0)), writes: none, says: []string{"no port has a node port"}, check: leadsTo("n1 n2")},
			{do: func(w *world) {
				w.pods("n2", "n3")
			}, writes: []string{"AddServersToServerGroup", "RemoveServersFromServerGroup"}, check: leadsTo("n2 n3")},
			{edit: edits(nodePort(30080)), serves: []string{"TCP:80 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100"}},
		}},
		{name: "pods that cannot be backends", nodes: 2, before: func(w *world) {
			w.putSlice(slice1("192.0.2.1@n1"))
		}, service: edits(testkube.TCP(80)), restless: true, changes: []change{
			{writes: create, check: leadsTo("n1 n2")},
			{edit: edits(eni), says: []string{"addresses outside of the VPC cannot be backends: 192.0.2.1"}, check: leadsTo("n1 n2")},
			{do: func(w *world) {
				w.addNodes("n3")
				w.deleteNode("n1")
				for range 5 { // jobs wake the Service
					_, _ = w.Reconcile(w.t.Context(), w.get("web")) //nolint:errcheck // it says that the listener stays
					w.later(5 * settle)
				}
			}, check: leadsTo("n2 n3")},
		}},
		{name: "labels that no node has, Local", nodes: 2, before: func(w *world) {
			w.putSlice(slice1("10.9.0.1@n1", "10.9.1.1@n2"))
		}, service: edits(testkube.TCP(80), testkube.LocalTraffic), restless: true, changes: []change{
			{writes: create, check: leadsTo("n1 n2")},
			{edit: edits(with(annotation.BackendLabel, "pool=typo")), writes: none, says: []string{"no node has the labels"},
				check: leadsTo("n1 n2")},
			{do: func(w *world) { w.deleteNode("n1"); w.putSlice(slice1("10.9.1.1@n2")) }, writes: []string{"RemoveServersFromServerGroup"},
				check: leadsTo("n2")},
		}},
		{name: "an address without network interface, and a pod that is gone", nodes: 3, before: ranges, service: pods, restless: true,
			changes: []change{
				{writes: create, check: leadsTo("n1 n2")},
				{do: func(w *world) {
					w.putSlice(slice1(w.podAddress("n2")+"@n2", "10.1.77.77@n3"))
				}, writes: []string{"RemoveServersFromServerGroup"}, says: []string{"10.1.77.77"}, check: leadsTo("n2")},
			}},
		{name: "an endpoint on a node that is not known, Local", nodes: 2, before: func(w *world) {
			w.putSlice(slice1("10.9.0.1@n1", "10.9.1.1@n2"))
		}, service: edits(testkube.TCP(80), testkube.LocalTraffic), restless: true, changes: []change{
			{writes: create, check: leadsTo("n1 n2")},
			{do: func(w *world) {
				w.putSlice(slice1("10.9.1.1@n2", "10.9.2.1@elsewhere"))
			}, writes: []string{"RemoveServersFromServerGroup"}, says: []string{"elsewhere"}, check: leadsTo("n2")},
		}},
		{name: "the weight of a server that somebody has taken out", nodes: 2, before: func(w *world) {
			w.crowd(1, 1)
		}, service: edits(testkube.TCP(80), testkube.LocalTraffic), changes: []change{
			{writes: create},
			{do: func(w *world) { w.removeServer("n2"); w.crowd(1, 4) }, serves: []string{"TCP:80 i-n1:30080=1 i-n2:30080=4"}},
		}},
	})
}
