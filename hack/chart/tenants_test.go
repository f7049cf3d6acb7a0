package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

const (
	infra, team  = "infra", "team-a"
	edgeGroup    = infra + "/edge"
	clbFinalizer = "service.k8s.alibaba/resources"
	nlbFinalizer = "service.k8s.alibaba/nlb"
	zones        = "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b"
)

// tenants is a cluster with an author of Services who has the role edit in one namespace, and what is not his in the cloud.
type tenants struct {
	*sandbox
	// clients are those of an administrator for infra, and of the author for his namespace.
	clients map[string]kubernetes.Interface
	cloud   *alicloud.Client
}

// TestAuthorsGetNothingOfOthers: an author with the role edit in one namespace, whom the chart's policies judge or not, tries to have load
// balancers of others deleted, to take one over, and to block a Service: with names of the shape that the manager gives, with finalizers,
// labels and tags, and with ids. An author who may also write the status of Services there copies that of another one.
func TestAuthorsGetNothingOfOthers(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string]string{"policies": intranetOnly, "no policy": " --set admissionPolicy.enabled=false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTenants(t, policies)
			container := w.container(system, w.deployment().Spec.Template.Spec)
			manager := container.start()
			company := w.madeByHand()
			w.create(infra, "edge", inGroup(edgeGroup, 443))
			w.create(infra, "edge-2", inGroup(edgeGroup, 444))
			w.create(infra, "edge-nlb", ofNLB(inGroup(edgeGroup+"-nlb", 443)))
			edge, edgeNLB := w.address("edge"), w.address("edge-nlb")
			victim := w.begun(infra, "victim", service())
			before := w.inventory()
			w.forges(name == "policies", company)

			bait, baitNLB := w.begun(team, "bait", service()), w.begun(team, "bait-nlb", ofNLB(service()))
			for name, attempt := range map[string]struct {
				svc *corev1.Service
				of  types.UID
			}{
				"guest": {service(annotationPrefix+"loadbalancer-id", company, annotationPrefix+"loadbalancer-force-override-listeners", "true"),
					bait},
				"member":     {inGroup(edgeGroup, 8081), bait},
				"member-nlb": {ofNLB(inGroup(edgeGroup+"-nlb", 8081)), baitNLB},
				"first":      {inGroup("mine", 8082), victim},
				"second":     {inGroup("mine-too", 8083), victim},
			} {
				attempt.svc.Annotations[annotationPrefix+"loadbalancer-name"] = mark.DefaultName(attempt.of)
				w.create(team, name, attempt.svc)
			}
			// The Service of infra comes back as the youngest of its group.
			w.remove(infra, "edge")
			w.create(infra, "edge", inGroup(edgeGroup, 443))
			if again := w.address("edge"); again != edge {
				t.Errorf("the address of infra was %s, and is %s", edge, again)
			}
			manager.stop(t)
			manager = container.start()
			for _, name := range []string{"bait", "bait-nlb"} {
				w.goesOn(team, name)
			}
			time.Sleep(10 * time.Second) // what must not happen gives nothing to wait for
			for _, name := range []string{"bait", "bait-nlb", "guest", "labeled", "forged", "copied"} {
				w.remove(team, name)
			}
			w.goesOn(infra, "victim")
			if got := w.address("victim"); !strings.HasPrefix(got, "10.") {
				t.Errorf("the Service that asks for an address of the VPC has %s", got)
			}
			w.remove(infra, "victim")

			after := w.inventory()
			for id, was := range before {
				if after[id] != was {
					t.Errorf("load balancer %s was %q, and is %q", id, was, after[id])
				}
			}
			if again := w.address("edge-nlb"); again != edgeNLB {
				t.Errorf("the name of infra was %s, and is %s", edgeNLB, again)
			}
		})
	}
}

// forges makes Services of the author which claim load balancers of others by what the manager itself writes: its label and its tags, the
// status, and the Record of another Service. judged says that there are policies.
func (w *tenants) forges(judged bool, company string) {
	w.Helper()
	edge, err := w.services(infra).Get(w.Context(), "edge", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	const label = "service.k8s.alibaba/loadbalancer-id"
	for name, claim := range map[string]struct{ id, tags string }{
		"labeled": {edge.Labels[label], mark.TagOwner + "=" + mark.DefaultName(edge.UID)},
		"forged":  {company, ""}, "copied": {edge.Labels[label], ""},
	} {
		svc := service(annotationPrefix+"loadbalancer-address-type", "intranet",
			annotationPrefix+"loadbalancer-additional-resource-tags", claim.tags)
		svc.Finalizers, svc.Labels = []string{clbFinalizer}, map[string]string{label: claim.id}
		w.create(team, name, svc)
	}
	shown, err := json.Marshal(map[string]any{"status": edge.Status})
	if err != nil {
		w.Fatal(err)
	}
	patch := func(name, patch string) error {
		_, err := w.services(team).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}
	if err := patch("copied", string(shown)); !apierrors.IsForbidden(err) {
		w.Errorf("with the role edit, the status can be written: %v", err)
	}
	w.must("kubectl -n " + team + " create role owner --verb='*' --resource='services,services/status' && kubectl -n " + team +
		" create rolebinding owner --role owner --user author")
	w.until("the author may write the status", func(context.Context) string {
		if err := patch("copied", string(shown)); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, annotation := range []string{
		`"` + annotationPrefix + `loadbalancer-id":"` + company + `","` + annotationPrefix + `loadbalancer-force-override-listeners":"true"`,
		`"` + annotationPrefix + `loadbalancer-address-type":"internet"`, `"service.alibabacloud.com/paused":"true"`,
	} {
		if !judged {
			break
		}
		if err := patch("forged", `{"metadata":{"annotations":{`+annotation+`}}}`); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			w.Errorf("the status takes the annotation %s: %v", annotation, err)
		}
	}
}

// newTenants installs the chart with the namespaces of infra, which may do anything, and of the author.
func newTenants(t *testing.T, policies string) *tenants {
	t.Helper()
	s := newSandbox(t, helm4)
	s.must("kubectl create namespace " + infra + " && kubectl create namespace " + team + " && kubectl label namespace " + infra +
		" alicloud-ccm/internet=allowed")
	s.must("kubectl -n " + team + " create rolebinding author --clusterrole edit --user author")
	s.must("deploy/cloud-config.sh --region cn-hangzhou", "ACCESS_KEY_ID=emulator", "ACCESS_KEY_SECRET=emulator-secret", "VPC_ID=vpc-emulator")
	host := strings.TrimPrefix(s.url, "http://")
	s.must("helm install " + release + s.emulated() + " --wait --timeout 2m --set replicas=1,endpoints.nlb=" + host +
		` --set-json 'policy.allowedGroups=[{"namespaces":["` + team + `"],"groups":["` + edgeGroup + `","` + edgeGroup + `-nlb"]}]'` + policies)
	config := rest.CopyConfig(s.config)
	config.Impersonate.UserName = "author"
	author, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := alicloud.New(alicloud.Options{
		Region: "cn-hangzhou", Credentials: alicloud.StaticCredentials{AccessKeyID: "emulator", AccessKeySecret: "emulator-secret"},
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: host, NLB: host, VPC: host, ECS: host},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &tenants{sandbox: s, clients: map[string]kubernetes.Interface{infra: s.client, team: author}, cloud: cloud}
}

// inGroup is a Service that shares a load balancer.
func inGroup(group string, port int32) *corev1.Service {
	svc := service(annotationPrefix+"loadbalancer-group", group)
	svc.Spec.Ports[0].Port = port
	return svc
}

// madeByHand makes a CLB with a listener and delete protection, which no Service asks for, and returns its id.
func (w *tenants) madeByHand() string {
	w.Helper()
	ctx := w.Context()
	lb, err := w.cloud.CreateLoadBalancer(ctx,
		alicloud.LoadBalancer{Name: "company", AddressType: alicloud.AddressInternet, Spec: "slb.s1.small", DeleteProtection: "on"}, "by-hand")
	if err == nil {
		err = w.cloud.CreateListener(ctx, lb.ID, alicloud.Listener{
			ListenerKey: alicloud.ListenerKey{Port: 443, Protocol: "tcp"}, Description: "payroll, by hand",
			Attributes: alicloud.Attributes{"BackendServerPort": "443"},
		})
	}
	if err != nil {
		w.Fatal(err)
	}
	return lb.ID
}

// services are those of a namespace, as whoever writes them there sees them.
func (w *tenants) services(namespace string) typedcorev1.ServiceInterface {
	return w.clients[namespace].CoreV1().Services(namespace)
}

// create makes a Service, unless the policies refuse it, and reports whether it did. They refuse nothing of infra.
func (w *tenants) create(namespace, name string, svc *corev1.Service) bool {
	w.Helper()
	svc.Name = name
	if svc.Spec.LoadBalancerClass != nil {
		svc.Annotations[annotationPrefix+"loadbalancer-zone-maps"] = zones
	}
	_, err := w.services(namespace).Create(w.Context(), svc, metav1.CreateOptions{})
	switch {
	case err == nil:
		return true
	case namespace == infra || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err):
		w.Fatal(err)
	}
	w.Logf("%s: %v", name, err)
	return false
}

// begun makes a paused Service of which the finalizer says that the manager has had it, and returns its UID, that of nobody where the
// policies refuse it.
func (w *tenants) begun(namespace, name string, svc *corev1.Service) types.UID {
	w.Helper()
	svc.Finalizers = []string{clbFinalizer}
	if svc.Spec.LoadBalancerClass != nil {
		svc.Finalizers = []string{nlbFinalizer}
	}
	svc.Annotations[annotationPrefix+"loadbalancer-address-type"] = "intranet"
	svc.Annotations["service.alibabacloud.com/paused"] = "true"
	if !w.create(namespace, name, svc) {
		return "4f5c4a5e-0000-4000-8000-000000000000"
	}
	made, err := w.services(namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made.UID
}

// goesOn ends the pause of a Service, if it is there.
func (w *tenants) goesOn(namespace, name string) {
	w.Helper()
	const patch = `{"metadata":{"annotations":{"service.alibabacloud.com/paused":null}}}`
	_, err := w.services(namespace).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
}

// remove deletes a Service, and waits until it is gone.
func (w *tenants) remove(namespace, name string) {
	w.Helper()
	services := w.services(namespace)
	if err := services.Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	w.until(name+" is gone", func(ctx context.Context) string {
		svc, err := services.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v, %+v", err, svc.Status)
	})
}

// address waits until a Service of infra shows where it is.
func (w *tenants) address(name string) (shown string) {
	w.Helper()
	w.until(name+" has an address", func(ctx context.Context) string {
		svc, err := w.services(infra).Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(svc.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprintf("%v, %+v", err, svc.Status)
		}
		shown = svc.Status.LoadBalancer.Ingress[0].IP + svc.Status.LoadBalancer.Ingress[0].Hostname
		return ""
	})
	return shown
}

// inventory says what must stay of each load balancer: its name, whose it is, and whether it listens on port 443.
func (w *tenants) inventory() map[string]string {
	w.Helper()
	ctx, found := w.Context(), map[string]string{}
	note := func(id, name string, tags []alicloud.Tag, serves bool) {
		owner := ""
		if at := slices.IndexFunc(tags, func(tag alicloud.Tag) bool { return tag.Key == mark.TagOwner }); at >= 0 {
			owner = tags[at].Value
		}
		found[id] = fmt.Sprintf("name %s, owner %q, listens on 443: %t", name, owner, serves)
	}
	clbs, err := w.cloud.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{})
	if err != nil {
		w.Fatal(err)
	}
	for _, lb := range clbs {
		listeners, err := w.cloud.DescribeListeners(ctx, lb.ID)
		if err != nil {
			w.Fatal(err)
		}
		note(lb.ID, lb.Name, lb.Tags, slices.ContainsFunc(listeners[lb.ID], func(l alicloud.Listener) bool { return l.Port == 443 }))
	}
	nlbs, err := w.cloud.ListNLBs(ctx, alicloud.NLBQuery{})
	if err != nil {
		w.Fatal(err)
	}
	for _, lb := range nlbs {
		listeners, err := w.cloud.ListNLBListeners(ctx, []string{lb.ID})
		if err != nil {
			w.Fatal(err)
		}
		note(lb.ID, lb.Name, lb.Tags, slices.ContainsFunc(listeners, func(l alicloud.NLBListener) bool { return l.Port == 443 }))
	}
	return found
}
