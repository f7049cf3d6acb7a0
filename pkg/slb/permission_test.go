package slb

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func (w *world) permit(actions []string) {
	w.t.Helper()
	if !w.emulator.Permit("emulator", actions...) {
		w.t.Fatal("the emulator does not know the access key")
	}
}

// onlyLogged is the action without which everything works, but for a warning that nobody gets; the log says that.
const onlyLogged = "DescribeServerCertificates"

// TestEveryPermissionMayBeMissing does each operation under the published policy, and again for every action that it takes,
// with that one missing: the error names the action, what was there stays, and with the permission back it ends as it should.
func TestEveryPermissionMayBeMissing(t *testing.T) {
	t.Parallel()
	for row, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			smooth := newWorld(t)
			op.prepare(smooth)
			op.act(smooth)
			smooth.calls() // those of the test itself
			smooth.permit(alicloud.FeatureServices.Policy())
			smooth.converge("web")
			var taken []string
			for _, call := range smooth.calls() {
				action, _, _ := strings.Cut(call, "=")
				taken = append(taken, action)
			}
			slices.Sort(taken)
			want := smooth.state()
			taken = slices.Compact(taken)
			for _, i := range testkit.Sample(row, len(taken)) {
				action := taken[i]
				t.Run(action, func(t *testing.T) {
					t.Parallel()
					missing(t, op, action, want)
				})
			}
		})
	}
}

func missing(t *testing.T, op operation, action string, want map[string]cloudLB) {
	t.Helper()
	w := newWorld(t)
	op.prepare(w)
	before := w.state()
	op.act(w)
	w.calls()
	w.permit(alicloud.FeatureServices.Policy(action))
	var err error
	for range maxPasses {
		err = w.pass("web")
	}
	if !slices.Contains(w.calls(), action+"=Forbidden.RAM") {
		t.Fatal("the action was not called")
	}
	switch stays := w.staysRefused("web"); {
	case stays && !strings.Contains(w.synced("web").Message, action):
		t.Errorf("condition %+v, want one that names %s", w.synced("web"), action)
	case stays, action == onlyLogged:
	case action == "DescribeAccessControlLists" && len(w.get("web").Finalizers) == 0: // whoever may not read lists has made none
	case strings.HasPrefix(action, "DescribeVServerGroup") && cmp.Equal(want, w.state()): // a CLB that goes, goes with its groups
	case err == nil || !strings.Contains(err.Error(), action) || !alicloud.IsForbidden(err):
		t.Errorf("error %v, want one that names %s", err, action)
	}
	checkKept(t, before, want, w.state())
	w.permit(alicloud.FeatureServices.Policy())
	if strings.HasSuffix(action, "Listener") || w.staysRefused("web") {
		w.restart() // a listener whose replacement was refused is not taken down again for a while, and a refused move is not tried again
	}
	w.converge("web")
	if diff := cmp.Diff(want, w.state()); diff != "" {
		t.Errorf("state with the permission back (-undisturbed +got):\n%s", diff)
	}
}

// checkKept finds what serves traffic before and after the operation, and is gone in between.
func checkKept(t *testing.T, before, after, now map[string]cloudLB) {
	t.Helper()
	for name, old := range before {
		next, stays := after[name]
		if !stays {
			continue
		}
		for key := range maps.Keys(old.Listeners) {
			if next.Listeners[key] != nil && now[name].Listeners[key] == nil {
				t.Errorf("listener %s of %s is gone", key, name)
			}
		}
		for group, servers := range old.Groups {
			for _, server := range servers {
				if slices.Contains(next.Groups[group], server) && !slices.Contains(now[name].Groups[group], server) {
					t.Errorf("backend server %q of group %s of %s is gone", server, group, name)
				}
			}
		}
	}
}
