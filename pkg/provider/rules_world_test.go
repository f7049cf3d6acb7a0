package provider

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// request is a call of the manager.
type request struct {
	action  string
	values  url.Values
	refused bool
}

func (r request) isRead() bool {
	return slices.ContainsFunc([]string{"Get", "List", "Describe"}, func(verb string) bool { return strings.HasPrefix(r.action, verb) })
}

// thing is what a call is about: the same call for another listener or group is another one that may stay refused.
func (r request) thing() string {
	about := []string{r.action}
	for name := range r.values {
		if name == "ListenerPort" || strings.HasSuffix(name, "GroupName") ||
			strings.HasSuffix(name, "Id") && name != "RegionId" && name != "AccessKeyId" {
			about = append(about, name+"="+r.values.Get(name))
		}
	}
	slices.Sort(about[1:])
	return strings.Join(about, " ")
}

// refuser is what the manager reaches the cloud through. It refuses calls in place of the cloud, so that those of the test are not.
type refuser struct {
	next http.RoundTripper

	mu       sync.Mutex // guards the rest
	refuses  func(request) (code string, status int)
	requests []request
}

// RoundTrip implements [http.RoundTripper].
func (r *refuser) RoundTrip(call *http.Request) (*http.Response, error) {
	values := call.URL.Query()
	if call.Body != nil {
		body, err := io.ReadAll(call.Body)
		if err != nil {
			return nil, err
		}
		call.Body = io.NopCloser(bytes.NewReader(body))
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, err
		}
		for name := range form {
			values[name] = form[name]
		}
	}
	asked := request{action: values.Get("Action"), values: values}
	if code, status := r.answer(&asked); code != "" {
		text := fmt.Sprintf(`{"RequestId":"%d","Code":%q,"Message":"Refused by the test."}`, time.Now().UnixNano(), code)
		return &http.Response{
			Status: http.StatusText(status), StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: call, ContentLength: int64(len(text)),
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)),
		}, nil
	}
	return r.next.RoundTrip(call)
}

func (r *refuser) answer(asked *request) (code string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuses != nil {
		code, status = r.refuses(*asked)
	}
	asked.refused = code != ""
	r.requests = append(r.requests, *asked)
	return code, status
}

// from has calls refused from now on; nil refuses none.
func (r *refuser) from(refuses func(request) (string, int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = refuses
}

// since returns the calls since the last time.
func (r *refuser) since() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.requests
	r.requests = nil
	return all
}

// ruled is a manager with one Service, in a bubble of virtual time.
type ruled struct {
	t       *testing.T
	side    *side
	server  *emulatortest.Cloud
	person  *alicloud.Client // somebody whose calls always succeed
	manager *refuser
	kube    *fake.Clientset
	stop    func()
	hosts   map[string]string // instances by address
	pods    bool
}

func newRuled(t *testing.T, s *side) *ruled {
	t.Helper()
	config := cloud.DefaultConfig()
	config.Certificates = []cloud.CertificateConfig{{ID: "cert-1"}, {ID: "cert-2"}, {ID: "cert-3"}}
	config.VSwitches = append(config.VSwitches,
		cloud.VSwitchConfig{ID: "vsw-c", VPCID: config.VPCs[0].ID, Zone: "cn-hangzhou-c", CIDR: "10.3.0.0/16"})
	config.VPCs[0].IPv6CIDR, config.VSwitches[0].IPv6CIDR, config.VSwitches[1].IPv6CIDR = "2001:db8::/56", "2001:db8::/64", "2001:db8:0:1::/64"
	server := emulatortest.New(t, emulator.Options{Config: config, Settle: time.Second})
	w := &ruled{
		t: t, side: s, server: server, person: steadyClient(t, server), manager: &refuser{next: server.Transport()}, kube: testkube.NewClientset(),
		hosts: map[string]string{},
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		w.addNode(name)
	}
	w.start()
	return w
}

func (w *ruled) start() {
	w.t.Helper()
	w.stop = serveServicesOver(w.t, steadyClientOver(w.t, w.manager), w.kube, Settings{})
}

func (w *ruled) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

func (w *ruled) addNode(name string) {
	w.t.Helper()
	w.server.Put(testkube.InstanceOf(name), "{}")
	for _, i := range testkit.Must(w.person.DescribeInstances(w.t.Context(),
		alicloud.InstanceQuery{IDs: []string{testkube.InstanceOf(name)}}))(w.t) {
		w.hosts[i.PrivateIPs[0]] = i.ID
	}
	testkit.Must(w.kube.CoreV1().Nodes().Create(w.t.Context(), testkube.Node(name), metav1.CreateOptions{}))(w.t)
}

func (w *ruled) deleteNode(name string) {
	w.t.Helper()
	testkit.Check(w.t, w.kube.CoreV1().Nodes().Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// putPods makes the nodes, as pods in the network of the host, the only endpoints of the Service.
func (w *ruled) putPods(svc *corev1.Service, names ...string) {
	w.t.Helper()
	items := make([]string, 0, len(names))
	for _, name := range names {
		for address, id := range w.hosts {
			if id == testkube.InstanceOf(name) {
				items = append(items, address+"@"+name)
			}
		}
	}
	w.putEndpoints(svc, items...)
}

// putEndpoints makes addresses the only endpoints of the Service, such as "10.1.200.9@n1".
func (w *ruled) putEndpoints(svc *corev1.Service, items ...string) {
	w.t.Helper()
	all := w.kube.DiscoveryV1().EndpointSlices(testkube.Namespace)
	slice := testkube.EndpointSlice("web", svc.Spec.Ports[0], items...)
	slice.Name, slice.Ports = "web-1", nil
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Protocol: &port.Protocol, Port: new(port.TargetPort.IntVal)})
	}
	_, err := all.Update(w.t.Context(), slice, metav1.UpdateOptions{})
	if err != nil {
		_, err = all.Create(w.t.Context(), slice, metav1.CreateOptions{})
	}
	testkit.Check(w.t, err)
}

func (w *ruled) get() *corev1.Service {
	w.t.Helper()
	return testkit.Must(w.kube.CoreV1().Services(testkube.Namespace).Get(w.t.Context(), "web", metav1.GetOptions{}))(w.t)
}

func (w *ruled) change(changes ...func(*corev1.Service)) {
	w.t.Helper()
	svc := w.get()
	for _, f := range changes {
		f(svc)
	}
	svc.Generation++
	testkit.Must(w.kube.CoreV1().Services(testkube.Namespace).Update(w.t.Context(), svc, metav1.UpdateOptions{}))(w.t)
}

// events returns those since the last time, each as often as it was repeated.
func (w *ruled) events() (texts []string) {
	for _, action := range w.kube.Actions() {
		switch a := action.(type) {
		case clienttesting.CreateAction:
			if event, ok := a.GetObject().(*corev1.Event); ok {
				texts = append(texts, event.Reason+" "+event.Message)
			}
		case clienttesting.PatchAction:
			if a.GetResource().Resource == "events" {
				texts = append(texts, string(a.GetPatch()))
			}
		}
	}
	w.kube.ClearActions()
	return texts
}

// until waits until something holds, and reports whether it does in time.
func (w *ruled) until(atMost time.Duration, holds func() bool) bool {
	for end := time.Now().Add(atMost); ; time.Sleep(max(time.Second, atMost/50)) {
		if holds() {
			return true
		}
		if !time.Now().Before(end) {
			return false
		}
	}
}

func with(suffix annotation.Suffix, value string) func(*corev1.Service) {
	return testkube.Annotation(annotation.Prefixes[0]+string(suffix), value)
}

func unset(suffix annotation.Suffix) func(*corev1.Service) {
	return func(svc *corev1.Service) { delete(svc.Annotations, annotation.Prefixes[0]+string(suffix)) }
}

// portsServed are the ports that the load balancer serves, such as "tcp:80", with the instances behind each.
type portsServed map[string][]string

// everywhere reports whether each port of a load balancer leads to these instances and to no others.
func (s portsServed) everywhere(ids ...string) bool {
	for _, members := range s {
		if !slices.Equal(members, ids) {
			return false
		}
	}
	return len(s) > 0
}

// with reports whether each port of a load balancer leads to an instance.
func (s portsServed) with(id string) bool {
	for _, members := range s {
		if !slices.Contains(members, id) {
			return false
		}
	}
	return len(s) > 0
}

// nowhere reports whether no port of a load balancer leads to an instance.
func (s portsServed) nowhere(id string) bool {
	for _, members := range s {
		if slices.Contains(members, id) {
			return false
		}
	}
	return len(s) > 0
}
