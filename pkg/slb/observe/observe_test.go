package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

var (
	web    = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "0f5e8a1c"}}
	name   = mark.DefaultName(web.UID)
	owner  = alicloud.Tag{Key: mark.TagOwner, Value: name}
	of     = types.NamespacedName{Namespace: "default", Name: "web"}
	ours   = mark.Owner{Service: of, ClusterID: "c1"}
	others = mark.Owner{Service: types.NamespacedName{Namespace: "default", Name: "shop"}, ClusterID: "c1"}

	errNo   = errors.New("no answer")
	errGone = &alicloud.Error{Code: "ListenerNotFound", Status: 404}
)

// reader answers with what it has. Of the lists, it filters none: a search may be about something else.
type reader struct {
	Reader
	tagged, named []alicloud.LoadBalancer
	listeners     []alicloud.Listener
	groups        []alicloud.VServerGroup
	lists         [][]alicloud.AccessList // answers to one search after the other, the last one to all that follow
	access        map[string]alicloud.AccessList
	extensions    map[int][]alicloud.DomainExtension
	// fails are errors by what is read.
	fails map[string]error
	asked []string
}

func (r *reader) ask(what string) error {
	r.asked = append(r.asked, what)
	return r.fails[what]
}

func (r *reader) DescribeLoadBalancers(_ context.Context, query alicloud.LoadBalancerQuery) ([]alicloud.LoadBalancer, error) {
	if query.Tag != nil {
		return slices.Clone(r.tagged), r.ask("by tag")
	}
	return slices.Clone(r.named), r.ask("by name " + query.Name)
}

func (r *reader) DescribeListeners(_ context.Context, ids ...string) (map[string][]alicloud.Listener, error) {
	return map[string][]alicloud.Listener{ids[0]: r.listeners}, r.ask("listeners")
}

func (r *reader) DescribeVServerGroups(context.Context, string) ([]alicloud.VServerGroup, error) {
	return r.groups, r.ask("groups")
}

func (r *reader) DescribeVServerGroup(_ context.Context, id string) (alicloud.VServerGroup, error) {
	at := slices.IndexFunc(r.groups, func(g alicloud.VServerGroup) bool { return g.ID == id })
	full := r.groups[at]
	full.Backends = []alicloud.Backend{{BackendKey: alicloud.BackendKey{ServerID: "i-" + id}}}
	return full, r.ask("group " + id)
}

func (r *reader) DescribeAccessLists(context.Context, alicloud.Tag) ([]alicloud.AccessList, error) {
	err := r.ask("lists")
	found := r.lists[0]
	if len(r.lists) > 1 {
		r.lists = r.lists[1:]
	}
	return slices.Clone(found), err
}

func (r *reader) DescribeAccessList(_ context.Context, id string) (alicloud.AccessList, error) {
	list, ok := r.access[id]
	if err := r.ask("list " + id); err != nil || ok {
		return list, err
	}
	return list, &alicloud.Error{Code: "AclNotExist", Status: 404}
}

func (r *reader) DescribeDomainExtensions(_ context.Context, _ string, port int) ([]alicloud.DomainExtension, error) {
	return r.extensions[port], r.ask("extensions")
}

func lb(id string, tags ...alicloud.Tag) alicloud.LoadBalancer {
	return alicloud.LoadBalancer{ID: id, Name: name, Tags: tags}
}

func TestFind(t *testing.T) {
	t.Parallel()
	stranger := alicloud.Tag{Key: mark.TagOwner, Value: "a-stranger"}
	for _, test := range []struct {
		name   string
		cloud  reader
		lastID string
		id     string
		others []string
		err    string
		asked  []string
	}{
		{name: "none", asked: []string{"by tag"}},
		{name: "by its tag", cloud: reader{tagged: []alicloud.LoadBalancer{lb("lb-1", owner)}}, id: "lb-1", asked: []string{"by tag"}},
		{name: "what the search shows without the tag does not count", cloud: reader{tagged: []alicloud.LoadBalancer{lb("lb-1"), lb("lb-2",
			stranger)}}, asked: []string{"by tag"}},
		{name: "of two the one that the Service was on", cloud: reader{tagged: []alicloud.LoadBalancer{lb("lb-1", owner), lb("lb-2", owner)}},
			lastID: "lb-2", id: "lb-2", others: []string{"lb-1"}, asked: []string{"by tag"}},
		{name: "of two nobody knows which", cloud: reader{tagged: []alicloud.LoadBalancer{lb("lb-1", owner), lb("lb-2", owner)}}, lastID: "lb-3",
			err: "2 CLBs have the value " + name + ": lb-1, lb-2", asked: []string{"by tag"}},
		{name: "a search that fails is no answer", cloud: reader{fails: map[string]error{"by tag": errNo}}, err: "no answer",
			asked: []string{"by tag"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found, rest, err := Find(t.Context(), &test.cloud, web, test.lastID)
			id := ""
			if found != nil {
				id = found.ID
			}
			if id != test.id || !slices.Equal(rest, test.others) {
				t.Errorf("found %q and %v, want %q and %v", id, rest, test.id, test.others)
			}
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if _, config := errors.AsType[*problem.ConfigError](err); config != strings.Contains(test.err, "CLBs have") {
				t.Errorf("for the user to resolve: %v", config)
			}
			if diff := cmp.Diff(test.asked, test.cloud.asked); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAll: of a CLB, the groups of the Service are read, and of an existing one also those of nobody.
func TestAll(t *testing.T) {
	t.Parallel()
	own, foreign := ours.Mark("30080"), others.Mark("30081")
	groups := []alicloud.VServerGroup{{ID: "rsp-1", Name: own}, {ID: "rsp-2", Name: foreign}, {ID: "rsp-3", Name: "by hand"}}
	listener := func(description, group string) []alicloud.Listener {
		return []alicloud.Listener{{ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: "tcp"}, Description: description,
			VServerGroupID: group, Status: alicloud.ListenerRunning}}
	}
	for _, test := range []struct {
		name   string
		cloud  reader
		reused bool
		groups []string
		err    string
		// contradicts says that the error is one about answers that cannot both be true.
		contradicts bool
	}{
		{name: "of its own", cloud: reader{groups: groups, listeners: listener(own, "rsp-1")}, groups: []string{own}},
		{name: "an existing one: those of nobody go by their ids", cloud: reader{groups: groups}, reused: true, groups: []string{own, "rsp-3"}},
		{name: "no groups", cloud: reader{listeners: listener(own, "")}},
		{name: "a group that a listener uses is missing in the list", cloud: reader{groups: groups[1:], listeners: listener(own, "rsp-1")},
			err: "lacks rsp-1", contradicts: true},
		{name: "a group that somebody else's listener uses is missing in the list", cloud: reader{groups: groups[:1],
			listeners: listener(foreign, "rsp-2")}, groups: []string{own}},
		{name: "a group goes between two reads", cloud: reader{groups: groups,
			fails: map[string]error{"group rsp-1": &alicloud.Error{Code: "ResourceNotFound.VServerGroup", Status: 404}}}, err: "shows rsp-1",
			contradicts: true},
		{name: "no listeners can be read", cloud: reader{fails: map[string]error{"listeners": errNo}},
			err: "read the listeners of lb-1: no answer"},
		{name: "no list of groups can be read", cloud: reader{fails: map[string]error{"groups": errNo}},
			err: "read the groups of lb-1: no answer"},
		{name: "no group can be read", cloud: reader{groups: groups, fails: map[string]error{"group rsp-1": errNo}},
			err: "read the backend servers of group rsp-1: no answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			observed, err := All(t.Context(), &test.cloud, lb("lb-1"), of, test.reused)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) || errors.Is(err,
				ErrContradiction) != test.contradicts {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err != nil {
				return
			}
			var names []string
			for _, g := range observed.Groups {
				names = append(names, g.Name)
				if len(g.Backends) != 1 || g.Backends[0].ServerID != "i-"+g.ID {
					t.Errorf("group %s has the backend servers %v", g.ID, g.Backends)
				}
			}
			if diff := cmp.Diff(test.groups, names); diff != "" || observed.Reused != test.reused || observed.LoadBalancer.ID != "lb-1" {
				t.Errorf("groups (-want +got), reused %v:\n%s", observed.Reused, diff)
			}
			if len(observed.Listeners) != len(test.cloud.listeners) || len(observed.Listeners) > 0 &&
				observed.Listeners[0].GroupID != test.cloud.listeners[0].VServerGroupID {
				t.Errorf("listeners %v", observed.Listeners)
			}
		})
	}
}

// TestAccessList: the list of the source ranges is the one with the Service's tag; one search that finds nothing does not prove that there
// is none.
func TestAccessList(t *testing.T) {
	t.Parallel()
	list := func(id string, tags ...alicloud.Tag) alicloud.AccessList {
		return alicloud.AccessList{ID: id, Name: model.AccessListName(web.UID), Tags: tags}
	}
	full := map[string]alicloud.AccessList{"acl-1": list("acl-1"), "acl-2": list("acl-2"), "acl-9": {ID: "acl-9", Name: "by hand"}}
	none := [][]alicloud.AccessList{nil}
	for _, test := range []struct {
		name     string
		lists    [][]alicloud.AccessList
		fails    map[string]error
		known    []string
		expected bool
		id       string
		missing  bool
		err      bool
		asked    []string
	}{
		{name: "none", lists: none, asked: []string{"lists"}},
		{name: "by its tag", lists: [][]alicloud.AccessList{{list("acl-1", owner)}}, id: "acl-1", asked: []string{"lists", "list acl-1"}},
		{name: "what the search shows without the tag does not count", lists: [][]alicloud.AccessList{{list("acl-1")}}, asked: []string{"lists"}},
		{name: "of two the one that a listener uses", lists: [][]alicloud.AccessList{{list("acl-1", owner), list("acl-2", owner)}},
			known: []string{"acl-2"}, id: "acl-2", asked: []string{"lists", "list acl-2"}},
		{name: "there should be one: asked twice", lists: [][]alicloud.AccessList{nil, {list("acl-1", owner)}}, expected: true, id: "acl-1",
			asked: []string{"lists", "lists", "list acl-1"}},
		{name: "by the id that a listener uses, with its name", lists: none, known: []string{"acl-9", "acl-1"}, expected: true, id: "acl-1",
			asked: []string{"lists", "list acl-9", "list acl-1"}},
		{name: "the one that a listener uses is somebody else's", lists: none, known: []string{"acl-9"}, asked: []string{"lists", "list acl-9"}},
		{name: "the one that a listener uses is not there", lists: none, known: []string{"acl-7"}, missing: true, asked: []string{"lists",
			"list acl-7"}},
		{name: "the search fails", lists: none, fails: map[string]error{"lists": errNo}, known: []string{"acl-1"}, err: true,
			asked: []string{"lists"}},
		{name: "the list cannot be read", lists: [][]alicloud.AccessList{{list("acl-1", owner)}}, fails: map[string]error{"list acl-1": errNo},
			err: true, asked: []string{"lists", "list acl-1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := &reader{lists: test.lists, access: full, fails: test.fails}
			found, missing, err := AccessList(t.Context(), cloud, web, test.known, test.expected)
			id := ""
			if found != nil {
				id = found.ID
			}
			if id != test.id || missing != test.missing || (err != nil) != test.err {
				t.Errorf("list %q, missing %v, error %v; want %q, %v, %v", id, missing, err, test.id, test.missing, test.err)
			}
			if diff := cmp.Diff(test.asked, cloud.asked); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExtensions: they are read of HTTPS listeners that are the Service's or nobody's.
func TestExtensions(t *testing.T) {
	t.Parallel()
	listener := func(protocol string, port int, description string) model.Listener {
		return model.Listener{ListenerKey: alicloud.ListenerKey{Port: port, Protocol: protocol}, Description: description}
	}
	for _, test := range []struct {
		name     string
		listener model.Listener
		fails    error
		found    int
		err      bool
	}{
		{"its own", listener("https", 443, ours.Mark("30443")), nil, 1, false},
		{"nobody's", listener("https", 443, "by hand"), nil, 1, false},
		{"another Service's", listener("https", 443, others.Mark("30443")), nil, 0, false},
		{"HTTP", listener("http", 443, ours.Mark("30443")), nil, 0, false},
		{"the listener is gone", listener("https", 80, ours.Mark("30443")), errGone, 0, false},
		{"no answer", listener("https", 443, "by hand"), errNo, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := &reader{extensions: map[int][]alicloud.DomainExtension{443: {{ID: "de-1"}}}, fails: map[string]error{"extensions": test.fails}}
			observed := &model.Model{Listeners: []model.Listener{test.listener}}
			if err := Extensions(t.Context(), cloud, observed, of); (err != nil) != test.err || len(observed.Listeners[0].Extensions) != test.found {
				t.Errorf("extensions %v, error %v", observed.Listeners[0].Extensions, err)
			}
		})
	}
}
