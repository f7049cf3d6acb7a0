package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

var (
	web      = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "0f5e8a1c"}}
	name     = mark.DefaultName(web.UID)
	owner    = alicloud.Tag{Key: mark.TagOwner, Value: name}
	stranger = alicloud.Tag{Key: mark.TagOwner, Value: "a-stranger"}
	ours     = mark.OwnerOf(web, "c1")

	errNo = errors.New("no answer")
)

// reader answers with what it has. Of the lists, it filters none: a search may be about something else.
type reader struct {
	Reader
	nlbs      []alicloud.NLB
	listeners []alicloud.NLBListener
	groups    []alicloud.NLBGroup // of searches by id
	access    []alicloud.SecurityGroup
	untagged  []alicloud.SecurityGroup // what a search does not find
	fails     map[string]error
	asked     []string
}

func (r *reader) ask(what string) error {
	r.asked = append(r.asked, what)
	return r.fails[what]
}

func (r *reader) ListNLBs(context.Context, alicloud.NLBQuery) ([]alicloud.NLB, error) {
	return slices.Clone(r.nlbs), r.ask("nlbs")
}

func (r *reader) ListNLBListeners(context.Context, []string) ([]alicloud.NLBListener, error) {
	return r.listeners, r.ask("listeners")
}

func (r *reader) AdditionalCertificates(_ context.Context, listener string) ([]string, error) {
	return []string{"cert-of-" + listener}, r.ask("certificates of " + listener)
}

func (r *reader) ListNLBGroups(_ context.Context, query alicloud.NLBGroupQuery) ([]alicloud.NLBGroup, error) {
	if query.Tag != nil {
		return slices.Clone(r.groups), r.ask("own groups")
	}
	found := slices.DeleteFunc(slices.Clone(r.groups), func(g alicloud.NLBGroup) bool { return !slices.Contains(query.IDs, g.ID) })
	return found, r.ask(fmt.Sprintf("groups %v", query.IDs))
}

func (r *reader) ListNLBServers(_ context.Context, group string) ([]alicloud.NLBServer, error) {
	return []alicloud.NLBServer{{NLBServerKey: alicloud.NLBServerKey{ID: "i-of-" + group}}}, r.ask("servers of " + group)
}

func (r *reader) DescribeSecurityGroups(context.Context, alicloud.Tag) ([]alicloud.SecurityGroup, error) {
	return slices.Clone(r.access), r.ask("security groups")
}

func (r *reader) DescribeSecurityGroup(_ context.Context, id string) (alicloud.SecurityGroup, error) {
	all := slices.Concat(r.access, r.untagged)
	i := slices.IndexFunc(all, func(g alicloud.SecurityGroup) bool { return g.ID == id })
	if i < 0 {
		return alicloud.SecurityGroup{}, &alicloud.Error{Code: "InvalidSecurityGroupId.NotFound"}
	}
	all[i].Rules = []alicloud.SecurityRule{{CIDR: "10.0.0.0/8"}}
	return all[i], r.ask("rules of " + id)
}

// TestLoadBalancersOfAService: those that show its tag, never one that only has its name, or is about to go.
func TestLoadBalancersOfAService(t *testing.T) {
	t.Parallel()
	lb := func(id string, change func(*alicloud.NLB), tags ...alicloud.Tag) alicloud.NLB {
		found := alicloud.NLB{ID: id, Name: name, Status: alicloud.NLBActive, Tags: tags}
		if change != nil {
			change(&found)
		}
		return found
	}
	protected := func(l *alicloud.NLB) { l.ModificationProtectionReason = mark.ProtectionReason }
	goes := func(l *alicloud.NLB) { l.Status = alicloud.NLBDeleting }
	for _, test := range []struct {
		name  string
		lb    alicloud.NLB
		owned bool
	}{
		{"with its tag", lb("nlb-1", nil, owner), true},
		{"with its tag, about to go", lb("nlb-1", goes, owner), false},
		{"with a stranger's tag", lb("nlb-1", protected, stranger), false},
		{"without a tag, with our protection", lb("nlb-1", protected), false},
		{"without a tag and our protection", lb("nlb-1", nil), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := &reader{nlbs: []alicloud.NLB{test.lb}}
			owned, err := Owned(t.Context(), cloud, name)
			if err != nil || len(owned) == 1 != test.owned {
				t.Errorf("by tag %v, error %v", owned, err)
			}
		})
	}
	silent := &reader{fails: map[string]error{"nlbs": errNo}}
	if _, err := Owned(t.Context(), silent, name); !errors.Is(err, errNo) {
		t.Errorf("by tag: %v", err)
	}
}

func TestListeners(t *testing.T) {
	t.Parallel()
	plain, secure := alicloud.NLBListener{ID: "lsn-1", Protocol: "TCP"}, alicloud.NLBListener{ID: "lsn-2", Protocol: "TCPSSL"}
	goes := alicloud.NLBListener{ID: "lsn-3", Protocol: "TCPSSL", Status: alicloud.NLBListenerDeleting}
	found := []alicloud.NLBListener{plain, secure, goes}
	for _, test := range []struct {
		name         string
		certificates bool
		fails        map[string]error
		want         []string
		asked        []string
		err          bool
	}{
		{name: "without certificates", want: []string{"lsn-1 []", "lsn-2 []"}, asked: []string{"listeners"}},
		{name: "with certificates", certificates: true, want: []string{"lsn-1 []", "lsn-2 [cert-of-lsn-2]"}, asked: []string{"listeners",
			"certificates of lsn-2"}},
		{name: "no answer", fails: map[string]error{"listeners": errNo}, asked: []string{"listeners"}, err: true},
		{name: "no answer about certificates: those of the last read stay, and the listeners are known", certificates: true,
			fails: map[string]error{"certificates of lsn-2": errNo}, want: []string{"lsn-1 []", "lsn-2 [cert-before]"},
			asked: []string{"listeners", "certificates of lsn-2"}, err: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := &reader{listeners: found, fails: test.fails}
			listeners, err := Listeners(t.Context(), cloud, "nlb-1")
			if err == nil && test.certificates {
				listeners[1].Certificates = []string{"cert-before"}
				err = Certificates(t.Context(), cloud, listeners)
			}
			var got []string
			for i := range listeners {
				got = append(got, fmt.Sprint(listeners[i].ID, " ", listeners[i].Certificates))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.err {
				t.Errorf("error %v, listeners (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(test.asked, cloud.asked); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGroups: the own ones of a Service, those of others that it names, and those that are known and that no search shows.
func TestGroups(t *testing.T) {
	t.Parallel()
	group := func(id, name string, servers int, tags ...alicloud.Tag) alicloud.NLBGroup {
		return alicloud.NLBGroup{ID: id, Name: name, Status: alicloud.NLBGroupAvailable, ServerCount: servers, Tags: tags}
	}
	mine := ours.NLBGroupName("30080", "TCP")
	own, untagged, foreign := group("sgp-1", mine, 1, owner), group("sgp-2", mine, 0), group("sgp-9", "shop", 1)
	goes := group("sgp-3", mine, 1, owner)
	goes.Status = alicloud.NLBGroupDeleting
	var many []string
	for i := range alicloud.MaxNLBQuery + 1 {
		many = append(many, fmt.Sprintf("sgp-%02d", i))
	}
	for _, test := range []struct {
		name                string
		own, cloud          []alicloud.NLBGroup
		joined, known       []string
		fails               map[string]error
		want, missing, asks []string
		err                 string
	}{
		{name: "own ones, with their servers", own: []alicloud.NLBGroup{own}, want: []string{"sgp-1 1 false"},
			asks: []string{"servers of sgp-1"}},
		{name: "an empty one has no servers to read", own: []alicloud.NLBGroup{untagged}, want: []string{"sgp-2 0 false"}},
		{name: "one that is about to go", own: []alicloud.NLBGroup{goes}},
		{name: "one of others", cloud: []alicloud.NLBGroup{foreign}, joined: []string{"sgp-9"}, want: []string{"sgp-9 1 true"},
			asks: []string{"groups [sgp-9]", "servers of sgp-9"}},
		{name: "one of others that is not there", joined: []string{"sgp-9"}, asks: []string{"groups [sgp-9]"}},
		{name: "a known one that has lost its tag", own: []alicloud.NLBGroup{own}, cloud: []alicloud.NLBGroup{untagged}, known: []string{"sgp-1",
			"sgp-2"},
			want: []string{"sgp-1 1 false", "sgp-2 0 false"}, asks: []string{"groups [sgp-2]", "servers of sgp-1"}},
		{name: "a known one that is not there", known: []string{"sgp-2"}, missing: []string{"sgp-2"}, asks: []string{"groups [sgp-2]"}},
		{name: "each is asked for once, and so many at a time", joined: many, known: many[:2], missing: many[:2],
			asks: []string{fmt.Sprintf("groups %v", many[:alicloud.MaxNLBQuery]), fmt.Sprintf("groups %v", many[alicloud.MaxNLBQuery:])}},
		{name: "no answer", joined: []string{"sgp-9"}, fails: map[string]error{"groups [sgp-9]": errNo}, asks: []string{"groups [sgp-9]"},
			err: "read the server groups [sgp-9]"},
		{name: "no answer about servers", own: []alicloud.NLBGroup{own}, fails: map[string]error{"servers of sgp-1": errNo},
			asks: []string{"servers of sgp-1"}, err: "read the servers of sgp-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := &reader{groups: test.cloud, fails: test.fails}
			groups, missing, err := Groups(t.Context(), cloud, web, ours, test.own, test.joined, test.known)
			var got []string
			for i := range groups {
				got = append(got, fmt.Sprint(groups[i].ID, " ", len(groups[i].Servers), " ", groups[i].Foreign))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || !slices.Equal(missing, test.missing) {
				t.Errorf("missing %v, groups (-want +got):\n%s", missing, diff)
			}
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.asks, cloud.asked); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnGroups: what a search by tag shows without the tag does not count.
func TestOwnGroups(t *testing.T) {
	t.Parallel()
	cloud := &reader{groups: []alicloud.NLBGroup{{ID: "sgp-1", Tags: []alicloud.Tag{owner}}, {ID: "sgp-2"}, {ID: "sgp-3",
		Tags: []alicloud.Tag{stranger}}}}
	groups, err := OwnGroups(t.Context(), cloud, name)
	if err != nil || len(groups) != 1 || groups[0].ID != "sgp-1" {
		t.Errorf("groups %v, error %v", groups, err)
	}
	if _, err := OwnGroups(t.Context(), &reader{fails: map[string]error{"own groups": errNo}}, name); !errors.Is(err, errNo) {
		t.Errorf("error %v", err)
	}
}

// TestAccess: the security group of the source ranges has the Service's tag. It is the one that was last seen, whatever its name is by now;
// else the one with the name or the description that the manager gives.
func TestAccess(t *testing.T) {
	t.Parallel()
	group := func(id, name string, tags ...alicloud.Tag) alicloud.SecurityGroup {
		return alicloud.SecurityGroup{ID: id, Name: name, Tags: tags}
	}
	ranges, text := ours.NLBSecurityGroup(web.UID)
	renamed := group("sg-9", "renamed", owner)
	renamed.Description = text
	for _, test := range []struct {
		name   string
		found  []alicloud.SecurityGroup
		hidden []alicloud.SecurityGroup
		fails  map[string]error
		last   string
		id     string
		others []string
		err    bool
	}{
		{"none", nil, nil, nil, "", "", nil, false},
		{"with tag and name", []alicloud.SecurityGroup{group("sg-1", "by hand", owner), group("sg-2", ranges, owner)}, nil, nil, "", "sg-2",
			nil, false},
		{"without the tag, and never seen", []alicloud.SecurityGroup{group("sg-1", ranges), group("sg-2", ranges, stranger)}, nil, nil, "", "",
			nil, false},
		{"renamed, and seen before", []alicloud.SecurityGroup{group("sg-1", "renamed", owner)}, nil, nil, "sg-1", "sg-1", nil, false},
		{"renamed, with its description", []alicloud.SecurityGroup{group("sg-1", "by hand", owner), renamed}, nil, nil, "", "sg-9", nil, false},
		{"a second one", []alicloud.SecurityGroup{group("sg-2", ranges, owner), renamed}, nil, nil, "sg-9", "sg-9", []string{"sg-2"}, false},
		{"seen before, and not found", nil, []alicloud.SecurityGroup{group("sg-1", ranges)}, nil, "sg-1", "sg-1", nil, false},
		{"somebody else's by its name, and not found", nil, []alicloud.SecurityGroup{group("sg-1", "theirs")}, nil, "sg-1", "", nil, false},
		{"with its description alone, and not found", nil, []alicloud.SecurityGroup{renamed}, nil, "sg-9", "", nil, false},
		{"seen before, and gone", nil, nil, nil, "sg-1", "", nil, false},
		{"seen before, not found, and no answer about it", nil, []alicloud.SecurityGroup{group("sg-1", ranges)},
			map[string]error{"rules of sg-1": errNo}, "sg-1", "", nil, true},
		{"no answer", nil, nil, map[string]error{"security groups": errNo}, "", "", nil, true},
		{"no answer about the rules", []alicloud.SecurityGroup{group("sg-1", ranges, owner)}, nil, map[string]error{"rules of sg-1": errNo},
			"", "", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			access, others, err := Access(t.Context(), &reader{access: test.found, untagged: test.hidden, fails: test.fails}, web, test.last)
			if (err != nil) != test.err || (access != nil) != (test.id != "") || !slices.Equal(others, test.others) {
				t.Fatalf("access %v beside %v, error %v", access, others, err)
			}
			if access != nil && (access.ID != test.id || len(access.Rules) != 1) {
				t.Errorf("access %v", access)
			}
		})
	}
}
