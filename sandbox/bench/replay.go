package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// A manager that keeps to the quota of 90 changes a minute takes a quarter of an hour to create 500 load balancers. So it creates one, and
// its calls are repeated for the others with their names in the place of the first one's: the cloud and the cluster end up as if the
// manager had made them all.

// template is a Service that the manager has served, with the calls that this took.
type template struct {
	service *corev1.Service
	calls   []api.Params      // successful writes, in order, without what signing adds
	groups  map[string]string // id by name
}

// recordService lets the manager serve a new Service and records how.
func (e *env) recordService(ctx context.Context, service *corev1.Service) (*template, error) {
	t := &template{groups: map[string]string{}}
	if _, err := e.during(ctx, "create the template of all Services", ofProduct(e.product), func(ctx context.Context) error {
		return e.createService(ctx, service)
	}); err != nil {
		return nil, err
	}
	var err error
	if t.service, err = e.service(ctx, service.Name); err != nil {
		return nil, err
	}
	t.calls = unsigned(e.since(writes(ofProduct(e.product))))
	list := api.Params{"Action": "DescribeVServerGroups", "Version": api.VersionSLB, "LoadBalancerId": t.loadBalancer()}
	if e.product == productNLB {
		list = api.Params{"Action": "ListServerGroups", "Version": api.VersionOf(productNLB), "MaxResults": "100"}
	}
	found, err := e.call(ctx, list)
	if err != nil {
		return nil, err
	}
	for _, group := range found.VServerGroups.VServerGroup {
		t.groups[group.Name] = group.ID
	}
	for _, group := range found.ServerGroups {
		t.groups[group.Name] = group.ID
	}
	return t, nil
}

// labelLoadBalancer is where the manager publishes the load balancer of a Service.
const labelLoadBalancer = "service.k8s.alibaba/loadbalancer-id"

func (t *template) loadBalancer() string { return t.service.Labels[labelLoadBalancer] }

// signing are the parameters that belong to one request, not to what it asks for. A repeated ClientToken would repeat the answer.
var signing = []string{
	"AccessKeyId", "ClientToken", "Format", "Signature", "SignatureMethod", "SignatureNonce", "SignatureType", "SignatureVersion",
	"SecurityToken", "Timestamp",
}

func unsigned(calls []emulator.Call) []api.Params {
	var all []api.Params
	for _, call := range calls {
		if call.Code != "" {
			continue
		}
		params := maps.Clone(call.Parameters)
		for _, name := range signing {
			delete(params, name)
		}
		params["Action"], params["Version"] = call.Action, api.VersionOf(call.Product)
		all = append(all, params)
	}
	return all
}

// answer holds those parts of answers that somebody here needs.
type answer struct {
	LoadBalancerID string `json:"LoadBalancerId"`
	VServerGroupID string `json:"VServerGroupId"`
	ServerGroupID  string `json:"ServerGroupId"`
	Address        string
	VServerGroups  struct {
		VServerGroup []struct {
			ID   string `json:"VServerGroupId"`
			Name string `json:"VServerGroupName"`
		}
	}
	ServerGroups []struct {
		ID   string `json:"ServerGroupId"`
		Name string `json:"ServerGroupName"`
	}
}

// call makes one call of the cloud: no SDK, no rate limit.
func (e *env) call(ctx context.Context, params api.Params) (a answer, err error) {
	text, err := cluster.Call(ctx, e.url, params["Version"], params["Action"], params)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", params["Action"], err)
	}
	return a, nil
}

// replay makes Services, and serves each as the manager would have done, with the calls of a template for its number.
func (e *env) replay(ctx context.Context, services []*corev1.Service, of func(i int) *template) error {
	numbers := make([]int, len(services))
	for i := range numbers {
		numbers[i] = i
	}
	begin := time.Now()
	err := each(ctx, numbers, func(ctx context.Context, i int) error {
		created, err := e.client.CoreV1().Services(namespace).Create(ctx, services[i], metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create a Service: %w", err)
		}
		return of(i).copyTo(ctx, e, created)
	})
	e.say("%d Services more after %.1f s", len(services), time.Since(begin).Seconds())
	return err
}

// copyTo serves a Service as the manager would have done.
func (t *template) copyTo(ctx context.Context, e *env, service *corev1.Service) error {
	names := t.names(service)
	var address string
	for _, params := range t.calls {
		a, err := e.call(ctx, renamed(params, names))
		if err != nil {
			return fmt.Errorf("serve Service %s: %w", service.Name, err)
		}
		switch params["Action"] {
		case "CreateLoadBalancer":
			names[t.loadBalancer()], address = a.LoadBalancerID, a.Address
		case "CreateVServerGroup":
			names[t.groups[params["VServerGroupName"]]] = a.VServerGroupID
		case "CreateServerGroup":
			names[t.groups[params["ServerGroupName"]]] = a.ServerGroupID
		}
	}
	return t.publish(ctx, e, service, names, address)
}

// names maps what identifies the template to what identifies a Service. Its UID also occurs without hyphens and cut off.
func (t *template) names(service *corev1.Service) map[string]string {
	names := map[string]string{t.service.Name: service.Name}
	old, now := string(t.service.UID), string(service.UID)
	names[old] = now
	plainOld, plainNow := strings.ReplaceAll(old, "-", ""), strings.ReplaceAll(now, "-", "")
	const cut = 31 // a name of 32 characters begins with a letter of its own
	names[plainOld[:cut]] = plainNow[:cut]
	for i, port := range t.service.Spec.Ports {
		names[strconv.Itoa(int(port.NodePort))] = strconv.Itoa(int(service.Spec.Ports[i].NodePort))
	}
	return names
}

// renamed is a copy of the parameters of a call in which every name is replaced.
func renamed(params api.Params, names map[string]string) api.Params {
	var pairs []string
	for old, now := range names {
		pairs = append(pairs, old, now)
	}
	replacer := strings.NewReplacer(pairs...)
	changed := api.Params{}
	for name, value := range params {
		changed[name] = replacer.Replace(value)
	}
	return changed
}

// publish writes into the Service what the manager would have written.
func (t *template) publish(ctx context.Context, e *env, service *corev1.Service, names map[string]string, address string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": t.service.Finalizers, "labels": map[string]string{labelLoadBalancer: names[t.loadBalancer()]},
	}})
	if err != nil {
		return fmt.Errorf("encode the metadata of Service %s: %w", service.Name, err)
	}
	if err = e.patchService(ctx, service.Name, string(patch)); err != nil {
		return err
	}
	if service, err = e.service(ctx, service.Name); err != nil {
		return err
	}
	service.Status = *t.service.Status.DeepCopy()
	ingress := &service.Status.LoadBalancer.Ingress[0]
	ingress.IP = address
	ingress.Hostname = strings.ReplaceAll(ingress.Hostname, t.loadBalancer(), names[t.loadBalancer()])
	if _, err := e.client.CoreV1().Services(namespace).UpdateStatus(ctx, service, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("publish the address of Service %s: %w", service.Name, err)
	}
	return nil
}
