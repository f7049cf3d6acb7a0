package deploy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func servers(ids ...string) []alicloud.NLBServer {
	var all []alicloud.NLBServer
	for _, id := range ids {
		all = append(all, alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: id, Type: alicloud.NLBServerECS, Port: 30080}, Weight: 100})
	}
	return all
}

// The steps of plans, with what they need as the difference of two models has it.

func create() model.Step { return setting(model.OpCreateLoadBalancer) }

// setting is a step on the load balancer itself.
func setting(op model.Op, ids ...string) model.Step {
	kind, pack := alicloud.NLBInternet, "cbwp-1"
	return model.Step{Op: op, Target: model.TargetLoadBalancer, IDs: ids, Want: model.Want{AddressType: &kind, IPv6AddressType: &kind,
		BandwidthPackage: &pack}}
}

func newGroup(name string) model.Step {
	return model.Step{Op: model.OpCreateGroup, Target: model.TargetGroup(name), Group: alicloud.NLBGroup{Name: name,
		Protocol: alicloud.NLBTCP}}
}

// onServers is a step on the servers of a group that is there, or that the same plan creates.
func onServers(op model.Op, name string, ids ...string) model.Step {
	return model.Step{Op: op, Target: model.TargetGroup(name), Group: alicloud.NLBGroup{ID: "sgp-" + name, Name: name},
		Servers: servers(ids...)}
}

func newListener(port int, group string) model.Step {
	l := model.Listener{NLBListener: alicloud.NLBListener{Port: port, Protocol: alicloud.NLBTCP}, Group: group}
	return model.Step{Op: model.OpCreateListener, Target: model.TargetListener(l.Key()), Listener: l,
		Needs: []string{model.TargetGroup(group)}}
}

func oldListener(op model.Op, port int) model.Step {
	step := newListener(port, "")
	step.Op, step.Needs, step.Listener.ID = op, nil, "lsn-old"
	return step
}

// there is an NLB with a group for each name, and with a listener on port 80 that uses the first one.
func there(groups ...model.Group) *model.Model {
	m := &model.Model{LoadBalancer: alicloud.NLB{ID: "nlb-1", Status: alicloud.NLBActive, AddressType: alicloud.NLBIntranet}, Groups: groups}
	if len(groups) > 0 {
		id := groups[0].ID
		m.Listeners = []model.Listener{{NLBListener: alicloud.NLBListener{ID: "lsn-old", Port: 80, Protocol: alicloud.NLBTCP,
			NLBListenerSettings: alicloud.NLBListenerSettings{ServerGroupID: &id}}}}
	}
	return m
}

func group(name string, ids ...string) model.Group {
	return model.Group{NLBGroup: alicloud.NLBGroup{ID: "sgp-" + name, Name: name}, Servers: servers(ids...)}
}

// applier has all that a plan needs, and nothing that is busy or held.
func applier(cloud *recorder, memory *Memory, observed *model.Model) *Applier {
	return &Applier{
		API: cloud, Model: observed, Memory: memory, MostServers: 100,
		Create: func(_ context.Context, _ any, send func(token string) (string, error)) error {
			_, err := send("token")
			return err
		},
		Busy: func(string) bool { return false },
		Turn: func(create func() error) error { return create() }, Held: func(Work) error { return nil },
	}
}

// TestRun: the calls of a plan, in their order; which of them wait for jobs or are stopped by a refusal, and which go on.
func TestRun(t *testing.T) {
	t.Parallel()
	twoPorts := []model.Step{newGroup("a"), newGroup("b"), newListener(80, "a"), newListener(81, "b")}
	forbidden := answer("Forbidden.RAM")
	pack := []model.Step{setting(model.OpDetach), setting(model.OpAttach), setting(model.OpTag)}
	access := model.Step{Op: model.OpCreateAccess, Target: model.TargetAccess,
		Access: model.Access{SecurityGroup: alicloud.SecurityGroup{Name: "k8s-nlb"}}}
	joins := setting(model.OpJoin, "sg-1")
	joins.Needs, joins.Access = []string{model.TargetAccess}, access.Access
	secure := newGroup("a")
	secure.Group.Protocol = alicloud.NLBTCPSSL
	mixed := setting(model.OpJoin, "sg-1")
	mixed.Swaps = []string{"sg-0"}
	certificates := oldListener(model.OpAddCertificates, 80)
	certificates.IDs = strings.Split("0123456789abcdef", "")
	for _, test := range []struct {
		name     string
		observed *model.Model
		steps    []model.Step
		cloud    recorder
		busy     string
		held     model.Op
		want     []string
		// waits says that steps wait for jobs, doubts are the parts that have to be read again.
		waits  bool
		doubts []model.Part
		// refused are the listeners and groups that count as refused.
		refused []string
	}{
		{
			name: "a new NLB takes no listener before it is active; groups do not wait for it", observed: &model.Model{},
			steps: append([]model.Step{create()}, twoPorts...),
			want:  []string{"CreateNLB token []", "CreateNLBGroup a TCP", "CreateNLBGroup b TCP"}, waits: true,
		},
		{
			name: "an NLB that is refused: groups come, listeners do not", observed: &model.Model{}, steps: append([]model.Step{create()},
				twoPorts...), cloud: recorder{refuses: map[string]error{"CreateNLB token": forbidden}},
			want:   []string{"CreateNLB token [] = Forbidden.RAM", "CreateNLBGroup a TCP", "CreateNLBGroup b TCP"},
			doubts: []model.Part{model.PartLoadBalancer},
		},
		{
			name: "one listener at a time", observed: there(group("a"), group("b")), steps: []model.Step{newListener(81, "a"), newListener(82, "b")},
			want: []string{"CreateNLBListener 81 sgp-a"}, waits: true,
		},
		{
			name: "a group whose job is under way takes no servers; another one does", observed: there(group("a"), group("b")),
			steps: []model.Step{onServers(model.OpAddServers, "a", "i-1"), onServers(model.OpAddServers, "b", "i-1")},
			busy:  "group:a", want: []string{"AddNLBServers sgp-b [i-1]"}, waits: true,
		},
		{
			name: "a group that is refused stops its listener only", observed: there(group("b")), steps: []model.Step{newGroup("a"), newListener(81,
				"a"), newListener(82, "b")},
			cloud: recorder{refuses: map[string]error{"CreateNLBGroup": forbidden}}, want: []string{"CreateNLBGroup a TCP = Forbidden.RAM",
				"CreateNLBListener 82 sgp-b"},
			doubts: []model.Part{model.PartGroups}, refused: []string{"group:a"},
		},
		{
			name: "a listener that is refused keeps no other one out", observed: there(group("a"), group("b")), steps: []model.Step{newListener(81,
				"a"), newListener(82, "b")},
			cloud: recorder{refuses: map[string]error{"81": forbidden}}, want: []string{"CreateNLBListener 81 sgp-a = Forbidden.RAM",
				"CreateNLBListener 82 sgp-b"},
			doubts: []model.Part{model.PartListeners}, refused: []string{"tcp:81"},
		},
		{
			name: "a setting that is refused stops no other one, and no listener", observed: there(group("a")),
			steps: []model.Step{setting(model.OpSetAttributes), setting(model.OpSetIPv6), newListener(81, "a")},
			cloud: recorder{refuses: map[string]error{"UpdateNLB ": forbidden}}, want: []string{"UpdateNLB nlb-1 = Forbidden.RAM",
				"SetNLBIPv6AddressType Internet", "CreateNLBListener 81 sgp-a"},
			doubts: []model.Part{model.PartLoadBalancer},
		},
		{
			name: "while an operation locks the NLB, it takes nothing else", observed: there(group("a")),
			steps: []model.Step{setting(model.OpSetAttributes), setting(model.OpSetIPv6), newListener(81, "a"), newGroup("b")},
			cloud: recorder{refuses: map[string]error{"UpdateNLB ": answer("IncorrectStatus.LoadBalancer")}},
			want:  []string{"UpdateNLB nlb-1 = IncorrectStatus.LoadBalancer", "CreateNLBGroup b TCP"},
		},
		{
			name: "without the security groups that it is to have, no port opens and none is left", observed: there(group("a")),
			steps:  []model.Step{access, joins, setting(model.OpLeave, "sg-0"), newListener(81, "a"), oldListener(model.OpDeleteListener, 80)},
			cloud:  recorder{refuses: map[string]error{"Join": forbidden}},
			want:   []string{"CreateSecurityGroup k8s-nlb", "JoinSecurityGroups [sg-1 sg-own] = Forbidden.RAM", "DeleteNLBListener lsn-old"},
			doubts: []model.Part{model.PartLoadBalancer}, refused: []string{"tcp:81"},
		},
		{
			name: "security groups that cannot be mixed: the old ones first", observed: there(), steps: []model.Step{mixed},
			cloud: recorder{refuses: map[string]error{"Join": answer(codeMixedGroups)}},
			want:  []string{"JoinSecurityGroups [sg-1] = " + codeMixedGroups, "LeaveSecurityGroups [sg-0]"}, waits: true,
		},
		{
			name: "a package that cannot be detached: no other one", observed: there(), steps: pack,
			cloud: recorder{refuses: map[string]error{"Detach": forbidden}},
			want:  []string{"DetachBandwidthPackage cbwp-1 = Forbidden.RAM", "TagNLB [nlb-1] 0"}, doubts: []model.Part{model.PartLoadBalancer},
		},
		{
			name: "protection that stays on keeps the NLB and its tags", observed: there(), steps: []model.Step{setting(model.OpSetProtection),
				setting(model.OpUntag, "k"), setting(model.OpDeleteLoadBalancer)},
			cloud: recorder{refuses: map[string]error{"ProtectNLB": forbidden}}, want: []string{"ProtectNLB nlb-1 = Forbidden.RAM"},
			doubts: []model.Part{model.PartLoadBalancer},
		},
		{
			name: "an address type that it has already", observed: there(), steps: []model.Step{setting(model.OpSetAddressType),
				setting(model.OpAttach)},
			cloud: recorder{refuses: map[string]error{"SetNLBAddressType": answer("OperationDenied.AddressTypeNotChanged")}},
			want:  []string{"SetNLBAddressType Internet 0 = OperationDenied.AddressTypeNotChanged", "AttachBandwidthPackage cbwp-1"},
		},
		{
			name: "an NLB that is gone ends the plan", observed: there(), steps: []model.Step{setting(model.OpTag), newGroup("a")},
			cloud: recorder{refuses: map[string]error{"TagNLB": answer("ResourceNotFound.loadBalancer")}},
			want:  []string{"TagNLB [nlb-1] 0 = ResourceNotFound.loadBalancer"}, doubts: []model.Part{model.PartLoadBalancer},
		},
		{
			name: "an action whose rate is used up is not called again in this plan", observed: there(), steps: []model.Step{newGroup("a"),
				newGroup("b"), setting(model.OpTag)},
			cloud: recorder{refuses: map[string]error{"CreateNLBGroup": answer("Throttling.User")}},
			want:  []string{"CreateNLBGroup a TCP = Throttling.User", "TagNLB [nlb-1] 0"},
		},
		{
			name: "a plan that is given up", observed: there(), steps: []model.Step{newGroup("a"), newGroup("b"), setting(model.OpTag)},
			cloud: recorder{refuses: map[string]error{"Group b": alicloud.ErrInterrupted}},
			want:  []string{"CreateNLBGroup a TCP", "CreateNLBGroup b TCP = " + alicloud.ErrInterrupted.Error()},
		},
		{
			name: "what is gone already is deleted", observed: there(group("a")), steps: []model.Step{oldListener(model.OpDeleteListener, 80),
				onServers(model.OpDeleteGroup, "a")},
			cloud: recorder{refuses: map[string]error{"DeleteNLBListener": answer("ResourceNotFound.Listener"),
				"DeleteNLBGroup": answer("ResourceNotFound.ServerGroup")}},
			want: []string{"DeleteNLBListener lsn-old = ResourceNotFound.Listener", "DeleteNLBGroup sgp-a = ResourceNotFound.ServerGroup"},
		},
		{
			name: "a group of TLS that the cloud does not take becomes one of TCP", observed: there(), steps: []model.Step{secure},
			cloud: recorder{refuses: map[string]error{"TCPSSL": answer("IllegalParam.Protocol")}},
			want:  []string{"CreateNLBGroup a TCPSSL = IllegalParam.Protocol", "CreateNLBGroup a TCP"},
		},
		{
			name: "work whose job failed waits, and what builds on it", observed: there(group("a")), steps: []model.Step{newGroup("b"),
				newListener(81, "b"), setting(model.OpTag)}, held: model.OpCreateGroup,
			want: []string{"TagNLB [nlb-1] 0"},
		},
		{
			name: "servers whose removal failed keep no others from coming", observed: there(group("a", "i-1")),
			steps: []model.Step{onServers(model.OpRemoveServers, "a", "i-1"), onServers(model.OpAddServers, "a", "i-2")},
			held:  model.OpRemoveServers, want: []string{"AddNLBServers sgp-a [i-2]"},
		},
		{
			name: "no more certificates than a call takes; the next pass adds the others", observed: there(group("a")),
			steps: []model.Step{certificates}, want: []string{"AddCertificates lsn-old 15"}, waits: true,
		},
		{
			name: "the security group of the source ranges is created with the NLB", observed: &model.Model{}, steps: []model.Step{access,
				func() model.Step {
					step := create()
					step.Needs = []string{model.TargetAccess}
					return step
				}()}, want: []string{"CreateSecurityGroup k8s-nlb", "CreateNLB token [sg-own]"},
		},
		{
			name: "without that security group no NLB is created", observed: &model.Model{}, steps: []model.Step{access, func() model.Step {
				step := create()
				step.Needs = []string{model.TargetAccess}
				return step
			}()}, cloud: recorder{refuses: map[string]error{"CreateSecurityGroup": forbidden}},
			want: []string{"CreateSecurityGroup k8s-nlb = Forbidden.RAM"}, doubts: []model.Part{model.PartAccess},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := applier(&test.cloud, &Memory{}, test.observed)
			a.Busy = func(target string) bool { return target == test.busy }
			a.Held = func(work Work) error {
				if work.Op == test.held {
					return errors.New("its job failed")
				}
				return nil
			}
			_ = a.Run(t.Context(), model.Plan{Steps: test.steps})
			if diff := cmp.Diff(test.want, test.cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if a.Waits != test.waits {
				t.Errorf("waits for jobs: %v", a.Waits)
			}
			if diff := cmp.Diff(test.doubts, slices.Sorted(maps.Keys(a.Doubts))); diff != "" && len(test.doubts)+len(a.Doubts) > 0 {
				t.Errorf("doubts (-want +got):\n%s", diff)
			}
			if got := slices.Sorted(maps.Keys(a.Refused)); !slices.Equal(got, test.refused) {
				t.Errorf("refused %v, want %v", got, test.refused)
			}
		})
	}
}

// TestJobs: what a job carries out is known by what it locks, and a group or a listener is there only if its job succeeds.
func TestJobs(t *testing.T) {
	t.Parallel()
	var cloud recorder
	a := applier(&cloud, &Memory{}, there(group("a")))
	if err := a.Run(t.Context(), model.Plan{Steps: []model.Step{onServers(model.OpAddServers, "a", "i-1"), newListener(81, "b"),
		setting(model.OpTag), newGroup("c"), oldListener(model.OpUpdateListener, 80)}}); err == nil {
		t.Error("a listener was created without its group")
	}
	want := []Started{
		{Job: "job-1", Targets: []string{"group:a"}, Step: "add servers group:a", Work: Work{model.OpAddServers, "group:a"},
			Part: model.PartGroups},
		{Job: "job-3", Targets: []string{"group:c"}, Step: "create server group group:c", Work: Work{model.OpCreateGroup, "group:c"},
			Part: model.PartGroups, Creates: true},
		{Job: "job-4", Targets: []string{"tcp:80", "lb"}, Step: "update listener tcp:80", Work: Work{model.OpUpdateListener, "tcp:80"},
			Part: model.PartListeners},
	}
	if diff := cmp.Diff(want, a.Jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

// TestServersThatDoNotFit: servers that the cloud refuses keep no others out, and those that are there stay.
func TestServersThatDoNotFit(t *testing.T) {
	t.Parallel()
	const isBad = " = ResourceNotFound.Ecs"
	bad := map[string]error{"bad": answer("ResourceNotFound.Ecs")}
	drain := onServers(model.OpUpdateServers, "a", "i-1")
	drain.Servers[0].Weight = 0
	for _, test := range []struct {
		name  string
		has   []string
		steps []model.Step
		cloud recorder
		want  []string
		waits bool
		// left is said of those that were left out.
		left string
	}{
		{name: "all at once", steps: []model.Step{onServers(model.OpAddServers, "a", "i-1", "i-2")},
			want: []string{"AddNLBServers sgp-a [i-1 i-2]"}},
		{
			name: "more than a call takes: the next pass adds the others", steps: []model.Step{onServers(model.OpAddServers, "a", "i-1", "i-2",
				"i-3")}, cloud: recorder{perCall: 2},
			want: []string{"AddNLBServers sgp-a [i-1 i-2]"}, waits: true,
		},
		{
			name: "more than a call takes leave", has: []string{"i-1", "i-2", "i-3"}, steps: []model.Step{onServers(model.OpRemoveServers, "a",
				"i-1", "i-2", "i-3")}, cloud: recorder{perCall: 2},
			want: []string{"RemoveNLBServers sgp-a [i-1 i-2]"}, waits: true,
		},
		{
			name: "the first of two is refused: the other one comes", steps: []model.Step{onServers(model.OpAddServers, "a", "bad", "i-2")},
			cloud: recorder{refuses: bad},
			want:  []string{"AddNLBServers sgp-a [bad i-2]" + isBad, "AddNLBServers sgp-a [bad]" + isBad, "AddNLBServers sgp-a [i-2]"},
			left:  "left out bad",
		},
		{
			name: "the last of four is refused: the first two come, the next pass adds the third", steps: []model.Step{onServers(model.OpAddServers,
				"a", "i-1", "i-2", "i-3", "bad")}, cloud: recorder{refuses: bad},
			want: []string{"AddNLBServers sgp-a [i-1 i-2 i-3 bad]" + isBad, "AddNLBServers sgp-a [i-1 i-2]"}, waits: true,
		},
		{
			name: "five refused in a row: the rest count as refused, too", steps: []model.Step{onServers(model.OpAddServers, "a", "bad1", "bad2",
				"bad3", "bad4", "bad5", "bad6", "i-7")}, cloud: recorder{refuses: bad, perCall: 1},
			want: []string{
				"AddNLBServers sgp-a [bad1]" + isBad, "AddNLBServers sgp-a [bad2]" + isBad, "AddNLBServers sgp-a [bad3]" + isBad,
				"AddNLBServers sgp-a [bad4]" + isBad, "AddNLBServers sgp-a [bad5]" + isBad,
			}, left: "left out bad1, bad2, bad3, bad4, bad5",
		},
		{
			name: "those that were to come are refused: the last one does not drain", has: []string{"i-1"},
			steps: []model.Step{onServers(model.OpAddServers, "a", "bad"), drain}, cloud: recorder{refuses: bad},
			want: []string{"AddNLBServers sgp-a [bad]" + isBad}, left: "left out bad",
		},
		{
			name: "the same, with another one that serves", has: []string{"i-1", "i-2"}, steps: []model.Step{onServers(model.OpAddServers, "a",
				"bad"), drain}, cloud: recorder{refuses: bad},
			want: []string{"AddNLBServers sgp-a [bad]" + isBad, "UpdateNLBServers sgp-a [i-1]"}, left: "left out bad",
		},
		{
			name: "a group that is locked: nobody is to blame", steps: []model.Step{onServers(model.OpAddServers, "a", "i-1", "i-2")},
			cloud: recorder{refuses: map[string]error{"Add": answer("IncorrectStatus.ServerGroup")}},
			want:  []string{"AddNLBServers sgp-a [i-1 i-2] = IncorrectStatus.ServerGroup"}, left: "IncorrectStatus.ServerGroup",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := applier(&test.cloud, &Memory{}, there(group("a", test.has...)))
			err := a.Run(t.Context(), model.Plan{Steps: test.steps})
			if diff := cmp.Diff(test.want, test.cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if a.Waits != test.waits {
				t.Errorf("waits for jobs: %v", a.Waits)
			}
			if (err != nil) != (test.left != "") || err != nil && !strings.Contains(err.Error(), test.left) {
				t.Errorf("error %v, want %q", err, test.left)
			}
		})
	}
}

// TestServersRefusedBefore: they are left out without a call for some minutes; those for which an own quota is used up are known.
func TestServersRefusedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var memory Memory
		for i, want := range []int{1, 0, 1} {
			cloud := &recorder{refuses: map[string]error{"bad": answer("QuotaExceeded.Instance")}}
			a := applier(cloud, &memory, there(group("a")))
			if err := a.Run(t.Context(), model.Plan{Steps: []model.Step{onServers(model.OpAddServers, "a", "bad")}}); len(cloud.calls) != want ||
				err == nil || !a.RefusedServer {
				t.Errorf("attempt %d: calls %v, error %v", i, cloud.calls, err)
			}
			if want > 0 && !slices.Equal(a.Exhausted, []string{"bad"}) {
				t.Errorf("attempt %d: exhausted %v", i, a.Exhausted)
			}
			if i == 1 {
				time.Sleep(serverPause.First)
			}
		}
	})
}

// TestListenerWaitsForServers: a listener leaves a group that serves only for one that does; meanwhile the old one follows the nodes.
func TestListenerWaitsForServers(t *testing.T) {
	t.Parallel()
	move := func(cps int) model.Step {
		step := oldListener(model.OpUpdateListener, 80)
		next := ""
		step.Group, step.Listener.Group, step.From, step.Awaits = alicloud.NLBGroup{Name: "new"}, "new", "sgp-old", true
		step.Changes.ServerGroupID = &next
		if cps > 0 {
			step.Changes.Cps = &cps
		}
		step.Meanwhile = []model.Step{onServers(model.OpAddServers, "old", "i-9")}
		return step
	}
	for _, test := range []struct {
		name     string
		old, new []string
		cps      int
		want     []string
		waits    bool
	}{
		{"the new one serves", []string{"i-1"}, []string{"i-2"}, 0, []string{"UpdateNLBListener lsn-old sgp-new"}, false},
		{"the new one is empty", []string{"i-1"}, nil, 0, []string{"AddNLBServers sgp-old [i-9]"}, true},
		{"the new one is empty, and another setting changes", []string{"i-1"}, nil, 5, []string{"UpdateNLBListener lsn-old -",
			"AddNLBServers sgp-old [i-9]"}, true},
		{"neither serves", nil, nil, 0, []string{"UpdateNLBListener lsn-old sgp-new"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var cloud recorder
			err := applier(&cloud, &Memory{}, there(group("old", test.old...), group("new", test.new...))).Run(t.Context(),
				model.Plan{Steps: []model.Step{move(test.cps)}})
			if diff := cmp.Diff(test.want, cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if _, waits := errors.AsType[*problem.WaitError](err); waits != test.waits {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestRefusalsOfAnNLB: what only people can do about it is said, and the engine knows that none was created.
func TestRefusalsOfAnNLB(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, code, says string
		notCreated       bool
	}{
		{"quota", "QuotaExceeded.LoadBalancersNum", "QuotaExceeded.LoadBalancersNum", true},
		{"no service-linked role", "OperationDenied.ServiceLinkedRoleNotExist", "AliyunServiceRoleForNlb", true},
		{"a security group that is not there", codeNoGroup, "names a security group that does not exist in the region", true},
		{"security groups that cannot be mixed", codeMixedGroups, "basic and advanced security groups cannot be mixed", true},
		{"rate used up", "Throttling.User", "Throttling.User", false},
		{"nobody knows", "InternalError", "InternalError", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			step := create()
			step.LoadBalancer.SecurityGroups = []string{"sg-1"}
			a := applier(&recorder{refuses: map[string]error{"CreateNLB": answer(test.code)}}, &Memory{}, &model.Model{})
			err := a.Run(t.Context(), model.Plan{Steps: []model.Step{step}})
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
			if (a.NotCreated != nil) != test.notCreated || a.Created {
				t.Errorf("not created: %v, created: %v", a.NotCreated, a.Created)
			}
		})
	}
}

// TestFailedJobs: work whose job failed twice in a row waits, longer each time, until a job of it succeeds or the Service goes.
func TestFailedJobs(t *testing.T) {
	t.Parallel()
	work, other := Work{model.OpAddServers, "group:a"}, Work{model.OpAddServers, "group:b"}
	failed := errors.New("the job failed")
	for name, test := range map[string]struct {
		then func(*Memory)
		held bool
	}{
		"at once":                 {func(*Memory) {}, true},
		"half a minute later":     {func(*Memory) { time.Sleep(heldFor) }, false},
		"it succeeded":            {func(m *Memory) { m.JobSucceeded("uid", work) }, false},
		"the Service is gone":     {func(m *Memory) { m.Forget("uid") }, false},
		"another Service is gone": {func(m *Memory) { m.Forget("uid-2") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var m Memory
				m.JobFailed("uid", work, nil)
				m.JobFailed("uid", work, failed)
				if err := m.Held("uid", work); err != nil {
					t.Errorf("after one failure: %v", err)
				}
				m.JobFailed("uid", work, failed)
				test.then(&m)
				if err := m.Held("uid", work); (err != nil) != test.held {
					t.Errorf("held: %v, want %v", err, test.held)
				}
				if m.Held("uid", other) != nil || m.Held("uid-2", work) != nil {
					t.Error("other work is held, too")
				}
			})
		})
	}
}

// TestEndedContext: no call is made any more.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var cloud recorder
	if err := applier(&cloud, &Memory{}, there()).Run(ctx, model.Plan{Steps: []model.Step{newGroup("a"), newListener(80,
		"a")}}); !errors.Is(err, context.Canceled) || len(cloud.calls) > 0 {
		t.Errorf("error %v, calls %v", err, cloud.calls)
	}
}

// TestWholeHealthCheck: a change of a health check sends all of it.
func TestWholeHealthCheck(t *testing.T) {
	t.Parallel()
	old, changed, kind, url, off := 2, 9, "TCP", "/healthz", false
	have := alicloud.NLBGroupSettings{PreserveClientIP: &off,
		HealthCheck: alicloud.NLBHealthCheck{Type: &kind, Interval: &old, Healthy: &old, URL: &url}}
	got := wholeCheck(&have, &alicloud.NLBGroupSettings{HealthCheck: alicloud.NLBHealthCheck{Interval: &changed}})
	if want := (alicloud.NLBHealthCheck{Type: &kind, Interval: &changed, Healthy: &old}); !cmp.Equal(got, want) {
		t.Errorf("check (-want +got):\n%s", cmp.Diff(want, got))
	}
	if *have.HealthCheck.Interval != old {
		t.Error("what is there has changed, too")
	}
}
