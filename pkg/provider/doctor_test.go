package provider

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// patient is an installation with which nothing is wrong, before a test breaks it.
type patient struct {
	server    cloudServer
	config    Config
	settings  Settings
	env       Environment
	nodes     []runtime.Object                   // and other objects of the cluster
	denied    authorizationv1.ResourceAttributes // what the role lacks
	role      []rbacv1.PolicyRule                // all that it allows; nil for everything but denied
	forbidden string                             // a resource that it may not get
	apiError  error
	reviews   func(*authorizationv1.SubjectAccessReview) bool // whether a subject may do what is asked; nil for nothing
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{server: startCloud(t), config: keys}
	p.config.VPCID, p.config.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
	p.settings.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	p.env = p.server.environment("")
	without("")(t, p)
	p.server.Put("i-1", `{"PrivateIpAddress": "10.1.7.7"}`)
	p.settings.Lease = ElectionLease{Namespace: metav1.NamespaceSystem, Name: LeaseName, RetryPeriod: time.Millisecond}
	p.nodes = []runtime.Object{patientNode("n1", "cn-hangzhou.i-1", "10.244.0.0/24"), leaseOf(LeaseName, "node-1_manager", time.Second)}
	return p
}

func patientNode(name, providerID string, podCIDRs ...string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Now()},
		Spec:       corev1.NodeSpec{ProviderID: providerID, PodCIDRs: podCIDRs},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.7.7"}}},
	}
}

func (p *patient) examine(t *testing.T) doctor.Report {
	t.Helper()
	kube := allowing(true, p.nodes...)
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).Spec.ResourceAttributes
		denied := asked.Verb == p.denied.Verb && asked.Resource == p.denied.Resource && asked.Subresource == p.denied.Subresource
		allowed := !denied && (p.role == nil || slices.ContainsFunc(p.role, func(rule rbacv1.PolicyRule) bool { return allows(rule, asked) }))
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}}, nil
	})
	kube.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Resource != p.forbidden {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("not in the role"))
	})
	p.answerReviews(&kube.Fake)
	cloud := New(p.config, p.env)
	cloud.Configure(p.settings)
	return cloud.Examine(t.Context(), kube, p.apiError)
}

func allows(rule rbacv1.PolicyRule, asked *authorizationv1.ResourceAttributes) bool {
	resource := strings.TrimSuffix(asked.Resource+"/"+asked.Subresource, "/")
	return slices.Contains(rule.APIGroups, asked.Group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, asked.Verb)
}

func wrongOf(report doctor.Report) []doctor.Check {
	return slices.DeleteFunc(slices.Clone(report.Checks), func(c doctor.Check) bool { return c.Status != doctor.Wrong })
}

func TestDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	report := p.examine(t)
	if !report.Empty() || slices.ContainsFunc(report.Checks, func(c doctor.Check) bool {
		return c.Status != doctor.OK && c.Subject != "encryption"
	}) {
		t.Errorf("not all is well:\n%s", report)
	}
	for _, call := range p.server.Calls(0) {
		if call.Kind == "write" && call.Status == http.StatusOK && !strings.HasPrefix(call.Action, "Delete") {
			t.Errorf("%s %v was carried out", call.Action, call.Parameters)
		}
	}
	for _, part := range []string{"AREA", "slb:*", "vtb-emulator", " 0 wrong, 0 not checked"} {
		if !strings.Contains(report.String(), part) {
			t.Errorf("the table does not show %q:\n%s", part, report)
		}
	}
}

// TestDoctorForgivesWhatIsOptional: a role such as the vendor's, from before readiness gates, is no fault.
func TestDoctorForgivesWhatIsOptional(t *testing.T) {
	t.Parallel()
	for subject, denied := range map[string]authorizationv1.ResourceAttributes{
		"may get pods":          {Verb: "get", Resource: "pods"},
		"may patch pods/status": {Verb: "patch", Resource: "pods", Subresource: "status"},
	} {
		p := newPatient(t)
		p.denied = denied
		report := p.examine(t)
		i := slices.IndexFunc(report.Checks, func(c doctor.Check) bool { return c.Subject == subject })
		if i < 0 || !report.Empty() {
			t.Fatalf("%s is missing, or a fault:\n%s", subject, report)
		}
		check := report.Checks[i]
		if check.Status != doctor.Optional || !strings.Contains(check.Detail, "readiness gates") || check.Fix == "" {
			t.Errorf("%s: %+v, want an optional one that says what for and how to get it", subject, check)
		}
	}
}

// TestDoctorAsksForPods: a policy that compares addresses with Pods needs the right to read them.
func TestDoctorAsksForPods(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.settings.Policy.EndpointAddresses = policy.AddressesPods
	p.denied = authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}
	report := p.examine(t)
	if !slices.ContainsFunc(report.Checks, func(c doctor.Check) bool {
		return c.Subject == "may list, watch pods" && c.Status == doctor.Wrong && strings.Contains(c.Detail, "endpointAddresses")
	}) {
		t.Errorf("no fault about pods:\n%s", report)
	}
}

// publishedRole is the ClusterRole of the vendor's guide for self-managed clusters.
var publishedRole = []rbacv1.PolicyRule{
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "update", "create"}},
	{
		APIGroups: []string{""}, Resources: []string{"persistentvolumes", "services", "secrets", "endpoints", "serviceaccounts"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch"},
	},
	{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "delete", "patch", "update"}},
	{APIGroups: []string{""}, Resources: []string{"services/status", "nodes/status"}, Verbs: []string{"update", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"events", "endpoints"}, Verbs: []string{"create", "patch", "update"}},
}

// TestDoctorUnderThePublishedRole: whoever comes from the official CCM has its role, under which everything that matters works.
func TestDoctorUnderThePublishedRole(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.role, p.settings.ControllerIdentities = publishedRole, true
	report := p.examine(t)
	var optional []string
	for _, check := range report.Checks {
		if check.Status == doctor.Optional {
			optional = append(optional, check.Subject)
		}
	}
	want := []string{
		"encryption", "may get namespaces", "may get configmaps", "may get configmaps", "may create tokenreviews",
		"may create subjectaccessreviews", "may get namespaces", "may list, watch endpointslices",
		"may get pods", "may list, watch pods", "may patch pods/status", "may create serviceaccounts/token",
	}
	if diff := cmp.Diff(want, optional); diff != "" || !report.Empty() {
		t.Errorf("what is optional (-want +got):\n%s\nin:\n%s", diff, report)
	}
}

// TestDoctorWithoutAnyEndpoints: EndpointSlices are optional only because Endpoints stand in for them.
func TestDoctorWithoutAnyEndpoints(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	for _, rule := range publishedRole {
		rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return r == "endpoints" })
		p.role = append(p.role, rule)
	}
	wrong := wrongOf(p.examine(t))
	if len(wrong) != 1 || wrong[0].Subject != "may list, watch endpoints" {
		t.Errorf("wrong is %+v, want the right to read Endpoints", wrong)
	}
}

// TestDoctorFindsEachFault breaks one thing after the other; each makes one line that names it and says what to do.
func TestDoctorFindsEachFault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		breaks  func(*testing.T, *patient)
		subject string
		detail  []string
	}{
		"secret": {func(_ *testing.T, p *patient) {
			p.config.AccessKeySecret = "other"
		}, "access key", []string{"SignatureDoesNotMatch", "Global.accessKeySecret"}},
		"key": {func(_ *testing.T, p *patient) {
			p.config.AccessKeyID = "other"
		}, "access key", []string{"InvalidAccessKeyId.NotFound"}},
		"no key":     {func(_ *testing.T, p *patient) { p.config.AccessKeyID = "" }, "access key", []string{"RAM role of this instance"}},
		"half a key": {func(_ *testing.T, p *patient) { p.env.Keys.ID = "x" }, "settings", []string{"only one is set"}},
		"region":     {func(_ *testing.T, p *patient) { p.config.Region = "cn-nowhere" }, "region", []string{`Global.region: "cn-nowhere"`}},
		"VPC":        {func(_ *testing.T, p *patient) { p.config.VPCID = "vpc-other" }, "VPC", []string{"vpc-other"}},
		"vSwitch": {func(_ *testing.T, p *patient) {
			p.config.VSwitchIDs = []string{"vsw-other"}
		}, "vSwitch vsw-other", []string{"vpc-emulator"}},
		"endpoint": {func(_ *testing.T, p *patient) { p.env.Endpoints["vpc"] = "127.0.0.1:1" }, "VPC", []string{"no answer"}},
		"clock":    {skewClock, "clock", []string{"1h"}},
		"route table": {func(_ *testing.T, p *patient) {
			p.config.RouteTableIDs = []string{"vtb-other"}
		}, "route tables", []string{"vtb-other"}},
		"tagged table": {func(_ *testing.T, p *patient) {
			p.settings.RouteTableTag = &alicloud.Tag{Key: "pods", Value: "yes"}
		}, "route tables", []string{"tag pods=yes"}},
		"cluster CIDR": {func(_ *testing.T, p *patient) {
			p.settings.ClusterCIDRs[0] = netip.MustParsePrefix("10.1.0.0/16")
		}, "cluster CIDR", []string{"vsw-a"}},
		"permission": {without("CreateLoadBalancer"), "slb:CreateLoadBalancer", []string{"denied", "Forbidden.RAM"}},
		"permission to see instances": {
			without("DescribeInstances"), "ecs:DescribeInstances", []string{"denied"},
		},
		"right": {func(_ *testing.T, p *patient) {
			p.denied = authorizationv1.ResourceAttributes{Verb: "delete", Resource: "nodes"}
		}, "may delete nodes", []string{"may not delete"}},
		"right to a status": {
			func(_ *testing.T, p *patient) {
				p.denied = authorizationv1.ResourceAttributes{Verb: "patch", Resource: "services", Subresource: "status"}
			}, "may patch services/status", []string{"services"},
		},
		"API server": {func(_ *testing.T, p *patient) { p.apiError = errors.New("no answer") }, "API server", []string{"no answer"}},
		"no provider ID": {func(_ *testing.T, p *patient) {
			p.nodes[0] = patientNode("n1", "", "10.244.0.0/24")
		}, "provider ID of n1", []string{"missing", "i-1"}},
		"other's provider ID": {func(_ *testing.T, p *patient) {
			p.nodes[0] = patientNode("n1", "cn-hangzhou.i-2", "10.244.0.0/24")
		}, "provider ID of n1", []string{"wrong", "i-2"}},
		"k3s provider ID": {func(_ *testing.T, p *patient) {
			p.nodes[0] = patientNode("n1", "k3s://n1", "10.244.0.0/24")
		}, "provider ID of n1", []string{"foreign", "k3s://n1"}},
		"official CCM": {func(_ *testing.T, p *patient) {
			p.nodes = append(p.nodes, officialLease())
		}, "official CCM", []string{"node-9_official", "kube-system/ccm"}},
		"route that a node misses": {func(_ *testing.T, p *patient) {
			since(p.nodes[0], time.Hour)
		}, "route table vtb-emulator", []string{"no route for 1 pod CIDR,", "n1"}},
		"route that leads elsewhere": {func(t *testing.T, p *patient) {
			p.server.Put("i-9", `{"PrivateIpAddress": "10.1.7.9"}`)
			p.route(t, "10.244.0.0/24", "i-9", "")
		}, "route table vtb-emulator", []string{"1 route to another instance", "n1", "i-9"}},
		"node without network": {func(_ *testing.T, p *patient) {
			n := since(p.nodes[0], time.Hour)
			n.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue, Reason: "NoRouteCreated",
				LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
			}}
		}, "network of n1", []string{"60m", "NoRouteCreated"}},
		"uninitialized node that ECS does not show": {func(_ *testing.T, p *patient) {
			n := since(patientNode("n2", "cn-hangzhou.i-gone", "10.244.1.0/24"), time.Hour)
			n.Status.Addresses[0].Address = "10.1.7.8"
			n.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized"}}
			p.nodes = append(p.nodes, n)
		}, "initialization of n2", []string{"unverified"}},
		"unreadable route table": {
			fault(`{"action":"DescribeRouteEntryList","code":"InvalidRouteTable.NotFound","status":400,"times":0}`), "route table vtb-emulator",
			[]string{"InvalidRouteTable.NotFound"},
		},
		"unmanaged route table": {func(_ *testing.T, p *patient) {
			p.config.RouteTableIDs = []string{"vtb-other"}
		}, "route table vtb-emulator", []string{"not managed"}},
		"no pod CIDR": {func(_ *testing.T, p *patient) {
			p.nodes[0] = patientNode("n1", "cn-hangzhou.i-1")
		}, "pod CIDR of n1", []string{"none"}},
		"other pod CIDR": {func(_ *testing.T, p *patient) {
			p.nodes[0] = patientNode("n1", "cn-hangzhou.i-1", "10.245.0.0/24")
		}, "pod CIDR of n1", []string{"10.245.0.0/24"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			test.breaks(t, p)
			report := p.examine(t)
			wrong := wrongOf(report)
			i := slices.IndexFunc(wrong, func(c doctor.Check) bool { return c.Subject == test.subject })
			if i < 0 || report.Empty() {
				t.Fatalf("%q is not wrong:\n%s", test.subject, report)
			}
			for _, part := range test.detail {
				if !strings.Contains(wrong[i].Detail, part) {
					t.Errorf("detail %q does not say %q", wrong[i].Detail, part)
				}
			}
			if wrong[i].Fix == "" {
				t.Error("it does not say what to do")
			}
			if strings.Contains(report.String(), keys.AccessKeySecret) {
				t.Errorf("the report shows the secret:\n%s", report)
			}
		})
	}
}

// TestDoctorWithoutTheOfficialLease: a role that may not read the Lease of the official CCM is no fault, and no proof that none runs.
func TestDoctorWithoutTheOfficialLease(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.nodes = append(p.nodes, officialLease())
	p.forbidden = "leases"
	report := p.examine(t)
	i := slices.IndexFunc(report.Checks, func(c doctor.Check) bool { return c.Subject == "official CCM" })
	if i < 0 || report.Checks[i].Status != doctor.NotChecked || !report.Empty() {
		t.Errorf("want one line that says that it is not checked:\n%s", report)
	}
}

// TestDoctorSeesRoutes: the line of a table counts the routes of nodes.
func TestDoctorSeesRoutes(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	since(p.nodes[0], time.Hour)
	p.route(t, "10.244.0.0/24", "i-1", "")
	p.config.ClusterID = "c1"
	p.route(t, "10.99.0.0/24", "i-1", "k8s/pod-cidr/c1") // from before --cluster-cidr was changed
	report := p.examine(t)
	i := slices.IndexFunc(report.Checks, func(c doctor.Check) bool { return c.Subject == "route table vtb-emulator" })
	if i < 0 || report.Checks[i].Status != doctor.OK || !strings.Contains(report.Checks[i].Detail, "of which 1 are routes of nodes") {
		t.Errorf("the route is not seen:\n%s", report)
	}
	if !strings.Contains(report.String(), "1 route of this cluster outside of --cluster-cidr") || !report.Empty() {
		t.Errorf("the entry outside of the cluster CIDR is not seen, or a fault:\n%s", report)
	}
}

// TestDoctorCountsWhatIsNotVerified: a node that ECS does not show is not right, and one of another provider says what it misses.
func TestDoctorCountsWhatIsNotVerified(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	gone, foreign := patientNode("n2", "cn-hangzhou.i-gone", "10.244.1.0/24"), patientNode("n3", "aws:///i-3")
	gone.Status.Addresses[0].Address, foreign.Status.Addresses[0].Address = "10.1.7.8", "10.9.9.9"
	foreign.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	p.nodes = append(p.nodes, gone, foreign)
	report := p.examine(t)
	for _, want := range []string{"1 of 3 nodes are unverified", "2 of 3 nodes are right", "the node gets no route and is no backend server"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
}

// since makes the Node as old as that.
func since(object runtime.Object, age time.Duration) *corev1.Node {
	n := object.(*corev1.Node)
	n.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
	return n
}

// route makes an entry in the route table.
func (p *patient) route(t *testing.T, cidr, instance, description string) {
	t.Helper()
	route := alicloud.NewRoute{TableID: "vtb-emulator", CIDR: cidr, InstanceID: instance, Description: description}
	if _, err := steadyClient(t, p.server.Cloud).CreateRouteEntries(t.Context(), []alicloud.NewRoute{route}); err != nil {
		t.Fatal(err)
	}
}

// officialLease is that of an official CCM that runs.
func officialLease() *coordinationv1.Lease { return leaseOf("ccm", "node-9_official", 0) }

// leaseOf is a Lease that was renewed some time ago.
func leaseOf(name, holder string, ago time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(holder), LeaseDurationSeconds: new(int32(240)), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-ago)},
			AcquireTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)},
		},
	}
}

func fault(text string) func(*testing.T, *patient) {
	return func(_ *testing.T, p *patient) { p.server.Fault(text) }
}

// without restricts the key to the published policy, and takes one action away from it.
func without(name string) func(*testing.T, *patient) {
	return func(t *testing.T, p *patient) {
		t.Helper()
		var allowed []string
		for _, action := range alicloud.Actions() {
			if action.Name != name {
				allowed = append(allowed, action.RAM())
			}
		}
		if !p.server.Permit(keys.AccessKeyID, allowed...) {
			t.Fatal("the emulator does not know the access key")
		}
	}
}

// skewClock puts a cloud in the place of the VPC endpoint whose clock is an hour ahead.
func skewClock(t *testing.T, p *patient) {
	t.Helper()
	target, err := url.Parse(p.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	p.env.Endpoints["vpc"] = server.URL
}
