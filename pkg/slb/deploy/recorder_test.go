package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// recorder is a [Writer] that writes down the calls, in the words of their actions, and takes them unless it was told to refuse.
type recorder struct {
	calls []string
	// refuses has calls refused that contain a text.
	refuses map[string]error
	// perCall is how many backend servers a call takes, most how many there may be in all groups together; 0 for any number.
	perCall, most, servers int
}

func answer(code string) error { return &alicloud.Error{Code: code, Status: 400} }

// call writes a call down, a refused one with its code at the end.
func (r *recorder) call(parts ...any) error {
	text := strings.TrimSuffix(fmt.Sprintln(parts...), "\n")
	for part, err := range r.refuses {
		if strings.Contains(text, part) {
			return r.refused(text, err)
		}
	}
	r.calls = append(r.calls, text)
	return nil
}

func (r *recorder) refused(text string, err error) error {
	why := err.Error()
	if answer, ok := errors.AsType[*alicloud.Error](err); ok {
		why = answer.Code
	}
	r.calls = append(r.calls, text+" = "+why)
	return err
}

// servings is a call that changes the number of backend servers.
func (r *recorder) serving(more int, parts ...any) error {
	if r.most > 0 && more > 0 && r.servers+more > r.most {
		return r.refused(strings.TrimSuffix(fmt.Sprintln(parts...), "\n"), answer("InstanceBackendServerNumberOverLimit"))
	}
	if err := r.call(parts...); err != nil {
		return err
	}
	r.servers += more
	return nil
}

func ids(backends []alicloud.Backend) string {
	names := make([]string, len(backends))
	for i := range backends {
		names[i] = backends[i].ServerID
	}
	return "[" + strings.Join(names, " ") + "]"
}

func (r *recorder) CreateLoadBalancer(_ context.Context, lb alicloud.LoadBalancer, token string) (alicloud.LoadBalancer, error) {
	lb.ID = "lb-1"
	return lb, r.call("CreateLoadBalancer", lb.VSwitchID, token)
}

func (r *recorder) DeleteLoadBalancer(_ context.Context, id string) error {
	return r.call("DeleteLoadBalancer", id)
}

func (r *recorder) SetDeleteProtection(_ context.Context, _, value string) error {
	return r.call("SetDeleteProtection", value)
}

func (r *recorder) SetModificationProtection(_ context.Context, _, status, _ string) error {
	return r.call("SetModificationProtection", status)
}

func (r *recorder) SetInternetSpec(_ context.Context, _, chargeType string, bandwidth int) error {
	return r.call("SetInternetSpec", chargeType, bandwidth)
}

func (r *recorder) SetInstanceChargeType(_ context.Context, _, chargeType string) error {
	return r.call("SetInstanceChargeType", chargeType)
}

func (r *recorder) SetInstanceSpec(_ context.Context, _, spec string) error {
	return r.call("SetInstanceSpec", spec)
}

func (r *recorder) SetLoadBalancerName(_ context.Context, _, name string) error {
	return r.call("SetLoadBalancerName", name)
}

func (r *recorder) TagLoadBalancer(_ context.Context, _ string, tags []alicloud.Tag) error {
	return r.call("TagLoadBalancer", tags)
}

func (r *recorder) UntagLoadBalancer(_ context.Context, _ string, keys []string) error {
	return r.call("UntagLoadBalancer", keys)
}

func (r *recorder) CreateListener(_ context.Context, _ string, l alicloud.Listener) error {
	return r.call("CreateListener", l.ListenerKey, l.VServerGroupID)
}

func (r *recorder) SetListener(_ context.Context, _ string, l alicloud.Listener) error {
	return r.call("SetListener", l.ListenerKey, l.VServerGroupID)
}

func (r *recorder) ReserveReplacement(ctx context.Context, old, wanted alicloud.ListenerKey) (context.Context, error) {
	return ctx, r.call("ReserveReplacement", old, wanted)
}

func (r *recorder) StartListener(_ context.Context, _ string, key alicloud.ListenerKey) error {
	return r.call("StartListener", key)
}

func (r *recorder) DeleteListener(_ context.Context, _ string, key alicloud.ListenerKey) error {
	return r.call("DeleteListener", key)
}

func (r *recorder) CreateDomainExtension(_ context.Context, _ string, port int, e alicloud.DomainExtension) (string, error) {
	return "de-1", r.call("CreateDomainExtension", port, e.Domain)
}

func (r *recorder) SetDomainExtension(_ context.Context, id, certificate string) error {
	return r.call("SetDomainExtension", id, certificate)
}

func (r *recorder) DeleteDomainExtension(_ context.Context, id string) error {
	return r.call("DeleteDomainExtension", id)
}

func (r *recorder) CreateAccessList(_ context.Context, list alicloud.AccessList) (string, error) {
	return "acl-1", r.call("CreateAccessList", list.Name)
}

func (r *recorder) AddAccessListEntries(_ context.Context, id string, entries []string) error {
	return r.call("AddAccessListEntries", id, entries)
}

func (r *recorder) RemoveAccessListEntries(_ context.Context, id string, entries []string) error {
	return r.call("RemoveAccessListEntries", id, entries)
}

func (r *recorder) DeleteAccessList(_ context.Context, id string) error {
	return r.call("DeleteAccessList", id)
}

func (r *recorder) BackendsPerCall() int {
	if r.perCall == 0 {
		return 100
	}
	return r.perCall
}

func (r *recorder) CreateVServerGroup(_ context.Context, _, name string, backends []alicloud.Backend) (string, error) {
	return "id-" + name, r.serving(len(backends), "CreateVServerGroup", name, ids(backends))
}

func (r *recorder) DeleteVServerGroup(_ context.Context, id string) error {
	return r.call("DeleteVServerGroup", id)
}

func (r *recorder) AddBackends(_ context.Context, group string, backends []alicloud.Backend) error {
	return r.serving(len(backends), "AddBackends", group, ids(backends))
}

func (r *recorder) RemoveBackends(_ context.Context, group string, backends []alicloud.Backend) error {
	return r.serving(-len(backends), "RemoveBackends", group, ids(backends))
}

func (r *recorder) SetBackends(_ context.Context, group string, backends []alicloud.Backend) error {
	return r.call("SetBackends", group, ids(backends))
}

func (r *recorder) ReplaceBackends(_ context.Context, group string, remove, add []alicloud.Backend) error {
	return r.call("ReplaceBackends", group, ids(remove), ids(add))
}
