package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestListenerOfUnknownSettings: an annotation is not accepted, so that nobody knows the settings of a listener. It follows its port to
// another group, and takes a certificate, all the same; its other settings stay. A listener of another protocol, or of somebody else, stays
// where it is.
func TestListenerOfUnknownSettings(t *testing.T) {
	t.Parallel()
	next := owner.NLBGroupName("31000", "TCP")
	for _, test := range []struct {
		name   string
		change func(want, have *model.Listener)
		want   string
	}{
		{"moves, with its certificate", func(_, _ *model.Listener) {}, "certificates=cert-1 group=sgp-1 -> certificates=cert-2 group=" + next},
		{"no certificate is known", func(want, _ *model.Listener) { want.CertificateIDs = nil }, "group=sgp-1 -> group=" + next},
		{"another protocol", func(want, _ *model.Listener) { want.Protocol = alicloud.NLBTCPSSL }, ""},
		{"somebody else's", func(_, have *model.Listener) { have.Description = new("by hand") }, ""},
		{"nobody knows the group", func(want, _ *model.Listener) { want.Blocked = problem.ReasonSkipSyncBackends }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			have, want := listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", ""), listener("", 80, owner.NLBMark("80", "TCP"), "", next)
			have.CertificateIDs, want.CertificateIDs, want.Certificates = []string{"cert-1"}, []string{"cert-2"}, []string{"cert-3"}
			cps := 5
			want.Cps, want.Blocked = &cps, problem.ReasonInvalidAnnotation
			test.change(&want, &have)
			actual := &model.Model{LoadBalancer: alicloud.NLB{ID: "nlb-1"}, Groups: []model.Group{group("sgp-1", "30080")},
				Listeners: []model.Listener{have}}
			plan := Diff(&model.Model{Groups: []model.Group{group("", "31000")}, Listeners: []model.Listener{want}}, actual, owner)
			var updates []string
			for i := range plan.Steps {
				if step := &plan.Steps[i]; step.Part() == model.PartListeners || step.Part() == model.PartCertificates {
					updates = append(updates, step.Before+" -> "+step.After)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(updates, "; ")); diff != "" {
				t.Errorf("updates (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyAMoveNeedsTheGroup: a certificate, or another setting, does not wait for a group that is in trouble.
func TestOnlyAMoveNeedsTheGroup(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, port string
		needs      []string
	}{
		{"stays in its group", "30080", nil},
		{"moves", "31000", []string{model.TargetGroup(owner.NLBGroupName("31000", "TCP"))}},
	} {
		have, want := listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", ""), listener("", 80, owner.NLBMark("80", "TCP"), "",
			owner.NLBGroupName(test.port, "TCP"))
		want.CertificateIDs = []string{"cert-2"}
		actual := &model.Model{LoadBalancer: alicloud.NLB{ID: "nlb-1"}, Groups: []model.Group{group("sgp-1", "30080")},
			Listeners: []model.Listener{have}}
		plan := Diff(&model.Model{Groups: []model.Group{group("", test.port)}, Listeners: []model.Listener{want}}, actual, owner)
		at := slices.IndexFunc(plan.Steps, func(s model.Step) bool { return s.Op == model.OpUpdateListener })
		if at < 0 || !slices.Equal(plan.Steps[at].Needs, test.needs) {
			t.Errorf("%s: %v", test.name, plan.Steps)
		}
	}
}

// TestListenerWithoutAMark: on a port of the Service, one that leads where ours is to lead is ours, described anew. Any other one is
// somebody else's, and is taken over on an existing load balancer only.
func TestListenerWithoutAMark(t *testing.T) {
	t.Parallel()
	mine, by := owner.NLBGroupName("30080", "TCP"), owner.NLBMark("80", "TCP")
	for _, test := range []struct {
		name               string
		reused             bool
		description, group string
		want               []string
		conflict           string
	}{
		{"ours, described anew", false, "mine", "sgp-1", []string{"update listener tcp:80"}, ""},
		{"ours, in another group", false, by, "sgp-9", []string{"update listener tcp:80"}, ""},
		{"another group, on ours", false, "mine", "sgp-9", nil,
			`port 80 is in use by the listener lsn-1 of an unknown owner, with the description "mine"`},
		{"another group, on an existing one", true, "mine", "sgp-9", []string{"update listener tcp:80"}, ""},
		{"another Service's, in our group", false, strings.ReplaceAll(by, ".web.", ".shop."), "sgp-1", nil,
			"port 80 is in use by the listener lsn-1 of Service ns/shop"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			have, want := listener("lsn-1", 80, test.description, test.group, ""), listener("", 80, by, "", mine)
			actual := &model.Model{LoadBalancer: alicloud.NLB{ID: "nlb-1"}, Reused: test.reused, Listeners: []model.Listener{have},
				Groups: []model.Group{group("sgp-1", "30080")}}
			plan := Diff(&model.Model{Groups: []model.Group{group("", "30080")}, Listeners: []model.Listener{want}, Reused: test.reused,
				Override: test.reused}, actual, owner)
			var conflict string
			for _, p := range plan.Problems {
				conflict += p.Message
			}
			if diff := cmp.Diff(test.want, stepsOf(plan)); diff != "" || conflict != test.conflict {
				t.Errorf("conflict %q, want %q; steps (-want +got):\n%s", conflict, test.conflict, diff)
			}
		})
	}
}
