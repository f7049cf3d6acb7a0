package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestGroupWakesWhomItConcerns: a Service of a group that comes, changes or goes has passes made over those of the others for which
// something changes, and over no other ones: in a large group, there would be as many passes as the square of the Services.
func TestGroupWakesWhomItConcerns(t *testing.T) {
	t.Parallel()
	w, woken := smallWorld(t, 160, 100), sets.New[string]()
	threeNodes(w)
	opts := w.options()
	opts.Engines[0].(driver.Waker).Wakes(func(svc types.NamespacedName) { woken.Insert(svc.Name) })
	w.Reconciler = service.NewReconciler(opts)

	var all []string
	rest := func() {
		for range 4 {
			for _, name := range all {
				w.mustPass(name)
			}
		}
		woken.Clear()
	}
	come := func(name string, port int32) func() {
		return func() {
			w.put(born(grouped(name, "edge", port), int64(len(all))))
			w.mustPass(name)
			all = append(all, name)
		}
	}
	leave := func(name string) func() {
		return func() {
			w.change(name, deleteService)
			w.mustPass(name)
			w.vanish(name)
			all = slices.DeleteFunc(all, func(other string) bool { return other == name })
		}
	}
	for i := range 4 {
		come(fmt.Sprint("s", i), int32(80+i))() //nolint:gosec // a port
	}
	rest()
	for _, step := range []struct {
		name string
		act  func()
		want string
	}{
		{"the fifth listener", come("s4", 84), ""},
		{"the sixth", come("s5", 85), ""},
		{"a Service that waits for a port", come("waits", 81), ""},
		{"another port of a Service", func() {
			w.change("s5", func(svc *corev1.Service) {
				svc.Spec.Ports = append(svc.Spec.Ports, testService("s5", 90).Spec.Ports...)
			})
			w.mustPass("s5")
		}, ""},
		{"without it", func() {
			w.change("s5", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
			w.mustPass("s5")
		}, ""},
		{"the one that has the port goes", leave("s1"), "waits"},
		{"the oldest goes, whose annotations decide", leave("s0"), "s2 s3 s4 s5 waits"},
	} {
		step.act()
		if got := strings.Join(sets.List(woken), " "); got != step.want {
			t.Errorf("%s: passes over %q, want %q", step.name, got, step.want)
		}
		rest()
	}
	w.silent("afterwards", all...)
}
