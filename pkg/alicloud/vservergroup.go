package alicloud

import (
	"context"
	"fmt"
	"unique"
)

// How many backend servers one vServer group call takes. Documents say 20; the official CCM sends 40 in production. The client
// starts with the larger number and stays with the smaller one as soon as the cloud refuses it.
// Source: https://www.alibabacloud.com/help/en/slb/api-addvservergroupbackendservers.
const (
	largeBackendCall = 40
	smallBackendCall = 20
)

// codeTooManyBackends answers a call with more backend servers than the cloud takes. It changed nothing.
const codeTooManyBackends = "TooManyBackendServers"

// Backend types.
const (
	BackendECS = "ecs"
	BackendENI = "eni"
)

// MaxWeight is the largest weight of a backend; 0 keeps new connections away and lets established ones end.
const MaxWeight = 100

// VServerGroup is a named group of backend servers of one CLB.
type VServerGroup struct {
	ID             string
	Name           string
	LoadBalancerID string
	// Backends are nil where only the group itself was read.
	Backends []Backend
}

// BackendKey identifies a backend server within its vServer group: one server may be registered under several ports.
type BackendKey struct {
	// Type is [BackendECS] or [BackendENI].
	Type string
	// ServerID is the id of the ECS instance or of the network interface.
	ServerID string
	// ServerIP is the address on the network interface. Empty for [BackendECS].
	ServerIP string
	Port     int
}

// Backend is one backend server of a vServer group.
type Backend struct {
	BackendKey
	// Weight is 0 to [MaxWeight].
	Weight      int
	Description string
}

// String returns for example "i-1:30080 weight 100".
func (b Backend) String() string {
	server := b.ServerID
	if b.ServerIP != "" {
		server += "/" + b.ServerIP
	}
	return fmt.Sprintf("%s:%d weight %d", server, b.Port, b.Weight)
}

// DescribeVServerGroups returns the groups of a CLB without their backend servers.
func (c *Client) DescribeVServerGroups(ctx context.Context, loadBalancerID string) ([]VServerGroup, error) {
	out := &describeGroupsResponse{answer: newAnswer()}
	if err := c.call(ctx, "DescribeVServerGroups", productSLB, params{"LoadBalancerId": loadBalancerID}, out); err != nil {
		return nil, err
	}
	var groups []VServerGroup
	for _, wire := range out.VServerGroups.VServerGroup {
		groups = append(groups, VServerGroup{ID: wire.VServerGroupId, Name: wire.VServerGroupName, LoadBalancerID: loadBalancerID})
	}
	return groups, nil
}

type describeGroupsResponse struct {
	answer
	VServerGroups struct {
		VServerGroup []struct{ VServerGroupId, VServerGroupName string }
	}
}

// DescribeVServerGroup returns a group with its backend servers, or an error for which [IsNotFound] holds.
func (c *Client) DescribeVServerGroup(ctx context.Context, id string) (VServerGroup, error) {
	out := &describeGroupResponse{answer: newAnswer()}
	if err := c.call(ctx, "DescribeVServerGroupAttribute", productSLB, params{"VServerGroupId": id}, out); err != nil {
		return VServerGroup{}, err
	}
	if out.VServerGroupId != id {
		return VServerGroup{}, out.unusable("DescribeVServerGroupAttribute", "asked for %q, got %q", id, out.VServerGroupId)
	}
	group := VServerGroup{ID: out.VServerGroupId, Name: out.VServerGroupName, LoadBalancerID: out.LoadBalancerId}
	backends := out.BackendServers.BackendServer
	group.Backends = make([]Backend, len(backends))
	for i, wire := range backends {
		group.Backends[i] = wire.backend()
	}
	return group, nil
}

type describeGroupResponse struct {
	answer
	VServerGroupId, VServerGroupName, LoadBalancerId string
	BackendServers                                   struct{ BackendServer []answeredBackend }
}

type answeredBackend struct {
	ServerId, ServerIp, Type, Description string
	Port, Weight                          int
}

// backend keeps one copy of each text: the same servers are backend servers of every Service's groups, and the caller remembers them all.
func (w answeredBackend) backend() Backend {
	b := Backend{
		BackendKey: BackendKey{Type: shared(w.Type), ServerID: shared(w.ServerId), ServerIP: shared(w.ServerIp), Port: w.Port},
		Weight:     w.Weight, Description: shared(w.Description),
	}
	if b.Type == "" {
		b.Type = BackendECS
	}
	if b.Type == BackendECS {
		b.ServerIP = "" // some answers fill it in; it is no part of an instance's identity
	}
	return b
}

func shared(s string) string { return unique.Make(s).Value() }

// BackendsPerCall is how many backend servers one call of the vServer group actions takes: 40 or 20, or what [Options] say if that is
// less. It may become smaller, never larger: a call of more backend servers than it says by then was refused for that (see
// [IsTooManyBackends]) and changed nothing.
func (c *Client) BackendsPerCall() int {
	if c.smallBackendCalls.Load() {
		return min(smallBackendCall, c.opts.MaxBackendsPerCall)
	}
	return c.opts.MaxBackendsPerCall
}

// IsTooManyBackends reports whether a call was refused for the number of backend servers in it. It changed nothing.
func IsTooManyBackends(err error) bool { return HasCode(err, codeTooManyBackends) }

// sizedCall makes a call with a number of backend servers and takes note when the cloud refuses so many.
func (c *Client) sizedCall(backends int, call func() error) error {
	err := call()
	if backends > smallBackendCall && IsTooManyBackends(err) {
		c.smallBackendCalls.Store(true)
		observeSize(sizeBackends, smallBackendCall)
	}
	return err
}

// CreateVServerGroup makes a group with up to [Client.BackendsPerCall] first backend servers and returns its id. The action takes
// no client token: after an ambiguous error the group may exist.
func (c *Client) CreateVServerGroup(ctx context.Context, loadBalancerID, name string, backends []Backend) (string, error) {
	in := params{"LoadBalancerId": loadBalancerID, "VServerGroupName": name}
	if len(backends) > 0 {
		in.setJSON("BackendServers", wireBackends(backends))
	}
	out := &describeGroupResponse{answer: newAnswer()}
	err := c.sizedCall(len(backends), func() error { return c.call(ctx, "CreateVServerGroup", productSLB, in, out) })
	if err != nil {
		return "", err
	}
	return out.VServerGroupId, nil
}

// DeleteVServerGroup removes a group. While a listener still uses it the answer is busy ([IsBusy]).
func (c *Client) DeleteVServerGroup(ctx context.Context, id string) error {
	return c.slbWrite(ctx, "DeleteVServerGroup", params{"VServerGroupId": id})
}

// AddBackends adds up to [Client.BackendsPerCall] backend servers. One bad server fails the whole call.
func (c *Client) AddBackends(ctx context.Context, groupID string, backends []Backend) error {
	return c.backendWrite(ctx, "AddVServerGroupBackendServers", groupID, backends)
}

// RemoveBackends removes up to [Client.BackendsPerCall] backend servers; those that are not in the group are ignored.
func (c *Client) RemoveBackends(ctx context.Context, groupID string, backends []Backend) error {
	return c.backendWrite(ctx, "RemoveVServerGroupBackendServers", groupID, backends)
}

// SetBackends changes weight and description of up to [Client.BackendsPerCall] backend servers and leaves the others as they are.
func (c *Client) SetBackends(ctx context.Context, groupID string, backends []Backend) error {
	return c.backendWrite(ctx, "SetVServerGroupAttribute", groupID, backends)
}

// ReplaceBackends swaps up to [Client.BackendsPerCall] backend servers for as many others in one call.
func (c *Client) ReplaceBackends(ctx context.Context, groupID string, remove, add []Backend) error {
	in := params{"VServerGroupId": groupID}.
		setJSON("OldBackendServers", wireBackends(remove)).setJSON("NewBackendServers", wireBackends(add))
	return c.sizedCall(max(len(remove), len(add)), func() error { return c.slbWrite(ctx, "ModifyVServerGroupBackendServers", in) })
}

func (c *Client) backendWrite(ctx context.Context, action, groupID string, backends []Backend) error {
	in := params{"VServerGroupId": groupID}.setJSON("BackendServers", wireBackends(backends))
	return c.sizedCall(len(backends), func() error { return c.slbWrite(ctx, action, in) })
}

// wireBackend is a backend server as the calls that write take it. All values are strings, which every version of the API reads.
type wireBackend struct {
	ServerID    string `json:"ServerId"`
	ServerIP    string `json:"ServerIp,omitempty"`
	Type        string `json:"Type"`
	Port        string `json:"Port"`
	Weight      string `json:"Weight"`
	Description string `json:"Description,omitempty"`
}

func wireBackends(backends []Backend) []wireBackend {
	wire := make([]wireBackend, len(backends))
	for i, b := range backends {
		wire[i] = wireBackend{
			ServerID: b.ServerID, ServerIP: b.ServerIP, Type: b.Type,
			Port: fmt.Sprint(b.Port), Weight: fmt.Sprint(b.Weight), Description: b.Description,
		}
	}
	return wire
}
