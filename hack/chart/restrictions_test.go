package chart

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// intranetOnly are the values of the restriction in deploy/.
const intranetOnly = ` --values hack/restrictions.yaml`

// warnings collects the warnings of an API server.
type warnings struct {
	mu    sync.Mutex
	texts []string // guarded by mu
}

func (w *warnings) HandleWarningHeader(code int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 { // https://www.rfc-editor.org/rfc/rfc9111#name-warning
		w.texts = append(w.texts, text)
	}
}

// take returns the warnings since the last call.
func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.texts, "\n")
	w.texts = nil
	return text
}

// asker asks a real API server whether Services would be admitted in a namespace.
type asker struct {
	*sandbox
	client   kubernetes.Interface
	warnings *warnings
}

func (s *sandbox) asker() asker {
	s.Helper()
	a := asker{sandbox: s, warnings: &warnings{}}
	config := rest.CopyConfig(s.config)
	config.WarningHandler = a.warnings
	var err error
	if a.client, err = kubernetes.NewForConfig(config); err != nil {
		s.Fatal(err)
	}
	return a
}

func (a asker) create(namespace string, svc *corev1.Service) error {
	a.Helper()
	_, err := a.client.CoreV1().Services(namespace).Create(a.Context(), svc, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// ofNLB is a Service with the class of NLBs.
func ofNLB(svc *corev1.Service) *corev1.Service {
	svc.Spec.LoadBalancerClass = ptr.To("alibabacloud.com/nlb")
	return svc
}

// TestRestrictions asks a real API server which address types and annotations namespaces may use, with the files in deploy/ and with the
// chart, and what it answers to unknown keys.
func TestRestrictions(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, helm4)
	s.must("kubectl create namespace tenant && kubectl create namespace open && kubectl label namespace open alicloud-ccm/internet=allowed")
	public := service()
	public.Name = "public"
	if _, err := s.client.CoreV1().Services("tenant").Create(t.Context(), public, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a := s.asker()
	s.must("kubectl apply -f deploy/admission-policy.yaml -f deploy/admission-restrictions.yaml")
	a.judges()
	a.keepsOldServices()
	a.leavesNothingBehind()
	a.judgesSubresources()
	s.must("kubectl delete -f deploy/admission-policy.yaml -f deploy/admission-restrictions.yaml")
	a.judgesNothing()

	s.must("helm install " + release + s.emulated() + intranetOnly)
	a.judges()
	old := service(annotationPrefix+"loadbalancer-adress-type", "intranet")
	old.Name = "old"
	if _, err := s.client.CoreV1().Services("open").Create(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.must("helm upgrade " + release + " --reset-then-reuse-values --set admissionPolicy.unknownKeys=Deny" +
		` --set-json 'admissionPolicy.restrictions=[{"name":"moves","namespaceSelector":{},"annotations":["move","move-grace"]}]'`)
	a.deniesUnknownKeys()
	a.deniesMoves()
	s.must("helm upgrade " + release +
		" --reset-then-reuse-values --set admissionPolicy.enabled=false --set-json admissionPolicy.restrictions=[]")
	a.judgesNothing()
}

// judges asks about every case once the policies are in force.
func (a asker) judges() {
	a.Helper()
	a.until("the policies are in force", func(context.Context) string {
		err := a.create("tenant", service(annotationPrefix+"loadbalancer-adress-type", "intranet"))
		if !apierrors.IsForbidden(err) || !strings.Contains(a.warnings.take(), "adress-type") {
			return "a public load balancer is admitted: " + text(err)
		}
		return ""
	})
	for name, test := range restrictionCases() {
		err := a.create("tenant", test.svc)
		switch {
		case test.refused == "" && err != nil:
			a.Errorf("%s: %v, want it admitted", name, err)
		case test.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused)):
			a.Errorf("%s: %v, want a refusal that says %q", name, err, test.refused)
		}
		if err := a.create("open", test.svc); err != nil {
			a.Errorf("%s, in a namespace with the label: %v", name, err)
		}
	}
	a.warnsOfUnknownKeys()
}

type restrictionCase struct {
	svc *corev1.Service
	// refused is a part of the refusal, "" for none.
	refused string
}

func restrictionCases() map[string]restrictionCase {
	const public = "load balancers of the address type internet are not allowed in namespace tenant; set " + annotationPrefix +
		"loadbalancer-address-type to intranet"
	intranet := []string{annotationPrefix + "loadbalancer-address-type", "intranet"}
	clusterIP := service()
	clusterIP.Spec.Type = corev1.ServiceTypeClusterIP
	foreign := service()
	foreign.Spec.LoadBalancerClass = ptr.To("example.com/other")
	return map[string]restrictionCase{
		"public by default": {service(), public},
		"public":            {service(annotationPrefix+"loadbalancer-address-type", "Internet"), public},
		"public by an empty value": {service(annotationPrefix+"loadbalancer-address-type", "", olderPrefix+"loadbalancer-address-type",
			"intranet"), public},
		"newer key wins": {service(annotationPrefix+"loadbalancer-address-type", "internet", olderPrefix+"loadbalancer-address-type",
			"intranet"), public},
		"public NLB":          {ofNLB(service()), public},
		"intranet":            {service(intranet...), ""},
		"intranet, older key": {service(olderPrefix+"loadbalancer-address-type", " Intranet "), ""},
		"NLB with public IPv6": {ofNLB(service(append(intranet, annotationPrefix+"loadbalancer-ipv6-address-type", "internet")...)),
			"IPv6 addresses of the type internet"},
		"existing CLB": {service(append(intranet, annotationPrefix+"loadbalancer-id", "lb-1")...),
			annotationPrefix + "loadbalancer-id: not allowed in namespace tenant"},
		"existing CLB, older key": {service(append(intranet, olderPrefix+"loadbalancer-id", "lb-1")...),
			olderPrefix + "loadbalancer-id: not allowed"},
		"public NLB that claims to be of another class": {
			ofNLB(service("service.beta.kubernetes.io/class", "other")), public,
		},
		"public, and claims to be of another class": {
			service("service.beta.kubernetes.io/class", "other", annotationPrefix+"loadbalancer-type", "nlb"), public,
		},
		"to be preserved": {service(append(intranet, annotationPrefix+"loadbalancer-preserve-lb-on-delete", "true")...),
			annotationPrefix + "loadbalancer-preserve-lb-on-delete: not allowed"},
		"paused": {service(append(intranet, "service.alibabacloud.com/paused", "true")...),
			"service.alibabacloud.com/paused: not allowed"},
		"paused by an empty value": {service(append(intranet, "service.alibabacloud.com/paused", "")...),
			"service.alibabacloud.com/paused: not allowed"},
		"not paused":                  {service(append(intranet, "service.alibabacloud.com/paused", "false")...), ""},
		"an empty value is no value":  {service(append(intranet, annotationPrefix+"loadbalancer-id", " ")...), ""},
		"no load balancer":            {clusterIP, ""},
		"another class":               {foreign, ""},
		"another class by annotation": {service("service.beta.kubernetes.io/class", "other"), ""},
	}
}

// keepsOldServices: a public Service from before the restriction may change, but not into something else that is restricted, and one that
// another controller served does not count as one from before.
func (a asker) keepsOldServices() {
	a.Helper()
	services := a.client.CoreV1().Services("tenant")
	change := func(name string, edit func(*corev1.Service)) error {
		svc, err := services.Get(a.Context(), name, metav1.GetOptions{})
		if err != nil {
			a.Fatal(err)
		}
		edit(svc)
		_, err = services.Update(a.Context(), svc, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	set := func(key, value string) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Annotations = map[string]string{key: value} }
	}
	if err := change("public", set("example.com/a", "b")); err != nil {
		a.Errorf("change of an old Service: %v", err)
	}
	if err := change("public", set(annotationPrefix+"loadbalancer-address-type", "internet")); err != nil {
		a.Errorf("the default, written out: %v", err)
	}
	if err := change("public", set(annotationPrefix+"loadbalancer-id", "lb-1")); !apierrors.IsForbidden(err) {
		a.Errorf("an old Service may go to an existing CLB: %v", err)
	}
	foreign := service("service.beta.kubernetes.io/class", "other")
	foreign.Name = "foreign"
	if _, err := services.Create(a.Context(), foreign, metav1.CreateOptions{}); err != nil {
		a.Fatal(err)
	}
	if err := change("foreign", func(svc *corev1.Service) { svc.Annotations = nil }); !apierrors.IsForbidden(err) {
		a.Errorf("a Service of another controller may become public: %v", err)
	}
}

// leavesNothingBehind: the administrator of a namespace that may keep no load balancers cannot do so in other ways either: by removing the
// finalizer, or by setting the annotation together with what ends the load balancer, or after that.
func (a asker) leavesNothingBehind() {
	a.Helper()
	a.must("kubectl --namespace tenant create rolebinding tenant --clusterrole=admin --user=tenant")
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tenant"}
	tenant, err := kubernetes.NewForConfig(config)
	if err != nil {
		a.Fatal(err)
	}
	held := service(annotationPrefix+"loadbalancer-address-type", "intranet")
	held.Name, held.Finalizers = "held", []string{"service.k8s.alibaba/resources"}
	if _, err := a.client.CoreV1().Services("tenant").Create(a.Context(), held, metav1.CreateOptions{}); err != nil {
		a.Fatal(err)
	}
	patch := func(client kubernetes.Interface, patch string) error {
		_, err := client.CoreV1().Services("tenant").Patch(a.Context(), "held", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	const released, preserved = "the finalizer of the manager may not be removed", "loadbalancer-preserve-lb-on-delete: not allowed"
	const preserve = `"metadata": {"annotations": {"` + annotationPrefix + `loadbalancer-preserve-lb-on-delete": "true"}}`
	a.until("the tenant has its role", func(context.Context) string { return text(patch(tenant, `{"metadata": {"labels": {"a": "b"}}}`)) })
	refuses := func(what, change, want string) {
		a.Helper()
		if err := patch(tenant, change); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			a.Errorf("%s: %v, want a refusal that says %q", what, err, want)
		}
	}
	refuses("no finalizer", `{"metadata": {"finalizers": null}}`, released)
	refuses("no finalizer and another type", `{"metadata": {"finalizers": null}, "spec": {"type": "ClusterIP"}}`, released)
	refuses("preserved and another type", `{"spec": {"type": "ClusterIP"}, `+preserve+`}`, preserved)
	refuses("preserved and another class",
		`{"metadata": {"annotations": {"service.beta.kubernetes.io/class": "other", "`+annotationPrefix+
			`loadbalancer-preserve-lb-on-delete": "true"}}}`, preserved)
	if err := patch(tenant, `{"spec": {"type": "ClusterIP"}, "metadata": {"annotations": null}}`); err != nil {
		a.Errorf("another type: %v", err)
	}
	refuses("public by way of another type", `{"spec": {"type": "LoadBalancer"}}`, "address type internet")
	if err := tenant.CoreV1().Services("tenant").Delete(a.Context(), "held", metav1.DeleteOptions{}); err != nil {
		a.Fatal(err)
	}
	refuses("preserved while it is deleted", `{`+preserve+`}`, preserved)
	if err := patch(tenant, `{"metadata": {"labels": {"a": "c"}}}`); err != nil {
		a.Errorf("a label while it is deleted: %v", err)
	}
	if err := patch(a.client, `{"metadata": {"finalizers": null}}`); err != nil {
		a.Errorf("the administrator of the cluster cannot remove the finalizer: %v", err)
	}
}

// judgesSubresources: who owns a namespace can change annotations and finalizers by a patch of the status, too, which the policies judge
// like one of the Service. The manager writes its finalizer and its label so.
func (a asker) judgesSubresources() {
	a.Helper()
	a.must("kubectl --namespace tenant create role owner --verb='*' --resource='services,services/status'")
	a.must("kubectl --namespace tenant create rolebinding owner --role=owner --user=owner --serviceaccount=kube-system:cloud-controller-manager")
	as := func(user string) kubernetes.Interface {
		config := rest.CopyConfig(a.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			a.Fatal(err)
		}
		return client
	}
	svc := service(annotationPrefix+"loadbalancer-address-type", "intranet")
	svc.Name, svc.Finalizers = "status", []string{"service.k8s.alibaba/resources"}
	if _, err := a.client.CoreV1().Services("tenant").Create(a.Context(), svc, metav1.CreateOptions{}); err != nil {
		a.Fatal(err)
	}
	patch := func(client kubernetes.Interface, patch string) error {
		_, err := client.CoreV1().Services("tenant").Patch(a.Context(), "status", types.MergePatchType, []byte(patch), metav1.PatchOptions{},
			"status")
		return err
	}
	owner, manager := as("owner"), as("system:serviceaccount:kube-system:cloud-controller-manager")
	a.until("the owner has the role", func(context.Context) string { return text(patch(owner, `{"metadata": {"labels": {"a": "b"}}}`)) })
	for change, want := range map[string]string{
		`{"annotations": {"` + annotationPrefix + `loadbalancer-address-type": "internet"}}`: "address type internet",
		`{"annotations": {"` + annotationPrefix + `loadbalancer-id": "lb-1"}}`:               "loadbalancer-id: not allowed",
		`{"annotations": {"service.alibabacloud.com/paused": "true"}}`:                       "service.alibabacloud.com/paused: not allowed",
		`{"annotations": {"` + annotationPrefix + `loadbalancer-bandwidth": "many"}}`:        "is not accepted",
	} {
		if err := patch(owner, `{"metadata": `+change+`}`); err == nil || !strings.Contains(err.Error(), want) {
			a.Errorf("%s: %v, want a refusal that says %q", change, err, want)
		}
	}
	if err := patch(manager, `{"metadata": {"finalizers": null, "labels": {"service.k8s.alibaba/loadbalancer-id": "lb-1"}}}`); err != nil {
		a.Errorf("the manager: %v", err)
	}
}

// warnsOfUnknownKeys: an unknown key is admitted, with a warning that names it, once.
func (a asker) warnsOfUnknownKeys() {
	a.Helper()
	for name, test := range map[string]struct {
		svc  *corev1.Service
		want []string // parts of the warning; none: no warning
	}{
		"misspelled": {service(annotationPrefix+"loadbalancer-adress-type", "intranet"),
			[]string{annotationPrefix + "loadbalancer-adress-type", "no such annotation of a CLB"}},
		"without loadbalancer-": {service(annotationPrefix+"address-type", "intranet"), []string{annotationPrefix + "address-type"}},
		"older prefix": {service(olderPrefix+"loadbalancer-adress-type", "intranet"),
			[]string{olderPrefix + "loadbalancer-adress-type"}},
		"another domain": {service("service.kubernetes.io/alibaba-cloud-loadbalancer-address-type", "intranet"),
			[]string{"service.kubernetes.io/alibaba-cloud-loadbalancer-address-type"}},
		"another spelling": {service("service.beta.kubernetes.io/AlibabaCloud-LoadBalancer-address-type", "intranet"),
			[]string{"AlibabaCloud-LoadBalancer-address-type"}},
		"misspelled pause": {service("service.alibabacloud.com/pause", "true"), []string{"service.alibabacloud.com/pause"}},
		"pause":            {service("service.alibabacloud.com/paused", "true"), nil},
		"misspelled grace": {service("service.alicloud-ccm.io/move-grave", "1h"), []string{"service.alicloud-ccm.io/move-grave"}},
		"grace":            {service("service.alicloud-ccm.io/move-grace", "1h"), nil},
		"of an NLB": {service(annotationPrefix+"loadbalancer-zone-maps", "cn-hangzhou-a:vsw-1"),
			[]string{"loadbalancer-zone-maps: no such annotation of a CLB"}},
		"on an NLB": {ofNLB(service(annotationPrefix+"loadbalancer-zone-maps", "cn-hangzhou-a:vsw-1")), nil},
		"of a CLB, on an NLB": {ofNLB(service(annotationPrefix+"loadbalancer-spec", "slb.s1.small")),
			[]string{"loadbalancer-spec: no such annotation of an NLB"}},
		"known":             {service(annotationPrefix+"loadbalancer-address-type", "intranet"), nil},
		"of a private zone": {service(annotationPrefix+"private-zone-name", "example.com"), nil},
		"of others":         {service("example.com/adress-type", "intranet"), nil},
		"of another load balancer": {service("service.beta.kubernetes.io/class", "other", annotationPrefix+"loadbalancer-adress-type",
			"intranet"), nil},
	} {
		a.warnings.take()
		err := a.create("open", test.svc)
		warned := a.warnings.take()
		missing := slices.ContainsFunc(test.want, func(want string) bool { return !strings.Contains(warned, want) })
		if err != nil || missing || (warned != "") != (len(test.want) > 0) {
			a.Errorf("%s: the API server warns %q and answers %v, want a warning that holds %q", name, warned, err, test.want)
		}
	}
}

func (a asker) deniesUnknownKeys() {
	a.Helper()
	misspelled := service(annotationPrefix+"loadbalancer-adress-type", "intranet")
	a.until("unknown keys are denied", func(context.Context) string {
		if err := a.create("open", misspelled); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "adress-type") {
			return "a misspelled key is admitted: " + text(err)
		}
		return ""
	})
	old, err := a.client.CoreV1().Services("open").Get(a.Context(), "old", metav1.GetOptions{})
	if err != nil {
		a.Fatal(err)
	}
	old.Labels = map[string]string{"changed": "true"}
	if _, err := a.client.CoreV1().Services("open").Update(a.Context(), old, metav1.UpdateOptions{}); err != nil {
		a.Errorf("change of a Service that had an unknown key before: %v", err)
	}
}

// deniesMoves: annotations that are no official ones can be forbidden as well.
func (a asker) deniesMoves() {
	a.Helper()
	for key, value := range map[string]string{"service.alicloud-ccm.io/move": "allow", "service.alicloud-ccm.io/move-grace": "1h"} {
		a.until(key+" is denied", func(context.Context) string {
			if err := a.create("open", service(key, value)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), key+": not allowed") {
				return "it is admitted: " + text(err)
			}
			return ""
		})
	}
}

func (a asker) judgesNothing() {
	a.Helper()
	a.until("nothing is judged any more", func(context.Context) string {
		a.warnings.take()
		err := a.create("tenant", service(annotationPrefix+"loadbalancer-adress-type", "intranet"))
		return text(err) + a.warnings.take()
	})
}
