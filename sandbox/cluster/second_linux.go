package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/controlplane"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/vpcnet"
)

// secondPoll is how often a second sandbox lists its instances.
const secondPoll = 500 * time.Millisecond

// secondControlPlane is the API server's machine of a second sandbox, beside that of the sandbox with the cloud.
var secondControlPlane = netip.AddrFrom4([4]byte{10, 0, 0, 11})

// secondNodes are real machines in the VPC of another sandbox, so that two clusters share one cloud. That one has emulator and network;
// this one has a control plane and machines, and asks for what it needs with that one's URL. One second sandbox at a time: its API server
// has one address.
type secondNodes struct {
	*machines
	control *vpcnet.Namespace

	mu      sync.Mutex
	known   []realnode.Instance          // guarded by mu
	changed chan struct{}                // guarded by mu; closed at the next change of known
	sides   map[string]*vpcnet.Namespace // of machines, by instance ID; guarded by mu
}

// newSecondNodes puts the first instances into the other sandbox's cloud.
func newSecondNodes(ctx context.Context, machines *machines) (nodes, error) {
	n := &secondNodes{machines: machines, changed: make(chan struct{}), sides: map[string]*vpcnet.Namespace{}}
	if machines.opts.OnPremises+machines.opts.VirtualNodes+machines.opts.WindowsNodes > 0 {
		return nil, errors.Join(errors.New("a sandbox in the cloud of another one has no machines on premises, virtual or Windows nodes"),
			n.end())
	}
	// One of the same directory that was killed has its instances and addresses there still.
	err := n.leave(ctx)
	if err == nil {
		n.control, err = n.attach(ctx, n.controlPlane(), attachment{Address: secondControlPlane.String()})
	}
	if err != nil {
		return nil, errors.Join(err, n.end())
	}
	for i := range machines.opts.Nodes {
		body, err := json.Marshal(map[string]any{
			"InstanceName": fmt.Sprintf("second-%d", i+1), "VSwitchId": vSwitches[i%len(vSwitches)], "SourceDestCheck": true,
			"Tags": []map[string]string{{"Key": secondTag, "Value": n.name}},
		})
		if err == nil {
			_, err = n.ask(ctx, http.MethodPut, "/_emulator/instances/"+n.instanceID(i), body)
		}
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	if err := n.refresh(ctx); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// controlPlane is the name of the API server's machine in the other sandbox's network.
func (n *secondNodes) controlPlane() string { return n.name + "-control-plane" }

func (n *secondNodes) instanceID(i int) string { return fmt.Sprintf("i-%s-%04d", n.name, i+1) }

// ask makes a request to the other sandbox.
func (n *secondNodes) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	answer, err := ask(ctx, method, n.opts.Cloud+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the sandbox with the cloud: %s %s: %w", method, path, err)
	}
	return answer, nil
}

func (n *secondNodes) attach(ctx context.Context, name string, what attachment) (*vpcnet.Namespace, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", name, err)
	}
	path, err := n.ask(ctx, http.MethodPut, "/_sandbox/attachments/"+name, body)
	if err != nil {
		return nil, err
	}
	return vpcnet.OpenNamespace(strings.TrimSpace(string(path)))
}

// leave takes everything of this sandbox out of the other sandbox: instances, and the networks of machines and API server.
func (n *secondNodes) leave(ctx context.Context) error {
	if err := n.refresh(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	known := n.known
	n.mu.Unlock()
	var errs []error
	for _, instance := range known {
		_, err := n.ask(ctx, http.MethodDelete, "/_emulator/instances/"+instance.ID, nil)
		errs = append(errs, err, n.detach(ctx, instance.ID))
	}
	return errors.Join(append(errs, n.detach(ctx, n.controlPlane()))...)
}

// detach ends a network in the other sandbox; one that it does not know is no error.
func (n *secondNodes) detach(ctx context.Context, name string) error {
	_, err := n.ask(ctx, http.MethodDelete, "/_sandbox/attachments/"+name, nil)
	return err
}

// refresh reads which instances of this sandbox there are.
func (n *secondNodes) refresh(ctx context.Context) error {
	text, err := n.ask(ctx, http.MethodGet, "/_emulator/state", nil)
	if err != nil {
		return err
	}
	var state struct {
		Instances []struct {
			InstanceId, InstanceName, Status string //nolint:revive // names on the wire
			VpcAttributes                    struct {
				PrivateIpAddress struct{ IpAddress []string } //nolint:revive // names on the wire
			}
			Tags struct{ Tag []struct{ Key, Value string } }
		} `json:"instances"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return fmt.Errorf("decode the state of the cloud: %w", err)
	}
	var mine []realnode.Instance
	for _, i := range state.Instances {
		if !slices.Contains(i.Tags.Tag, struct{ Key, Value string }{secondTag, n.name}) || len(i.VpcAttributes.PrivateIpAddress.IpAddress) == 0 {
			continue
		}
		mine = append(mine, realnode.Instance{
			ID: i.InstanceId, Name: i.InstanceName, Address: i.VpcAttributes.PrivateIpAddress.IpAddress[0], Running: i.Status == running,
		})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(mine, n.known) {
		n.known = mine
		close(n.changed)
		n.changed = make(chan struct{})
	}
	return nil
}

func (n *secondNodes) fabric() (fabric.Machines, fabric.Network) { return nil, nil }

func (n *secondNodes) join(context.Context, *Cloud) error { return nil }

func (n *secondNodes) access() *controlplane.Network {
	return &controlplane.Network{Address: secondControlPlane, Listen: n.control.Listen, Dial: n.control.Dial}
}

func (n *secondNodes) start(c *Cluster, heartbeat time.Duration) (func(context.Context) error, error) {
	n.prepare(c, heartbeat, realnode.FleetOptions{
		Instances: func() []realnode.Instance {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.known
		},
		Changed: func() <-chan struct{} {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.changed
		},
		Attach: func(ctx context.Context, instance realnode.Instance) (realnode.Namespace, error) {
			side, err := n.attach(ctx, instance.ID, attachment{Address: instance.Address, Instance: true})
			if err != nil {
				return nil, err
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			n.sides[instance.ID] = side
			return side, nil
		},
		Detach: func(id string) error {
			n.mu.Lock()
			side := n.sides[id]
			delete(n.sides, id)
			n.mu.Unlock()
			// The machine is switched off also when everything is being stopped.
			ctx, cancel := context.WithTimeout(context.Background(), requestTimeout) //nolint:forbidigo // see above
			defer cancel()
			return errors.Join(n.detach(ctx, id), side.Close())
		},
	})
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return n.fleet.Run(ctx) })
		group.Go(func() error { return n.watch(ctx) })
		return group.Wait()
	}, nil
}

// watch polls until ctx ends, or the other sandbox no longer answers: without its network there are no machines.
func (n *secondNodes) watch(ctx context.Context) error {
	ticker := time.NewTicker(secondPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := n.refresh(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (n *secondNodes) dial(ctx context.Context, from, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	side := n.sides[from]
	n.mu.Unlock()
	if side == nil {
		return nil, fmt.Errorf("%q is no instance that runs", from)
	}
	return side.Dial(ctx, network, addr)
}

// serve serves nothing: the other sandbox has the URL.
func (n *secondNodes) serve(*http.ServeMux) {}

// close leaves the other sandbox as it was.
func (n *secondNodes) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout) //nolint:forbidigo // everything else has ended
	defer cancel()
	return errors.Join(n.leave(ctx), n.control.Close(), n.end())
}
