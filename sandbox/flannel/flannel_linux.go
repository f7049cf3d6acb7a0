// Package flannel is what Flannel is to a node of a VPC: it takes the node's pod CIDR as the subnet of the machine and hands it to the CNI
// plugins. With its backend "alloc" it writes no routes: those between machines are the cloud controller manager's.
//
// Flannel's own program contains backends of other clouds, whose libraries a build would need; this one links its subnet manager and that
// one backend.
package flannel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/alloc" // registers the backend
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/lease"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
)

// annotationPrefix is that of Flannel's own manifests.
const annotationPrefix = "flannel.alpha.coreos.com"

// retryDelay is how soon a node without pod CIDR is read again. Flannel's manifests leave that to the pod's restarts, which take
// longer and longer.
const retryDelay = 200 * time.Millisecond

// Options are the flags that matter of Flannel's own program.
type Options struct {
	// Kubeconfig is an identity that may read and patch the status of its own Node; the environment variable NODE_NAME names that.
	Kubeconfig string
	// NetConf is the file with the network and its backend.
	NetConf string
	// PublicIP is the address of this machine.
	PublicIP string
	// CNIDir takes the configuration of the CNI plugins.
	CNIDir string
}

// Run gives the machine its subnet and returns when ctx ends.
func Run(ctx context.Context, opts Options) error {
	address := net.ParseIP(opts.PublicIP)
	if address == nil {
		return fmt.Errorf("--public-ip is %q: an IP address is accepted", opts.PublicIP)
	}
	subnets, err := kube.NewSubnetManager(ctx, "", opts.Kubeconfig, annotationPrefix, opts.NetConf, true)
	if err != nil {
		return fmt.Errorf("start the subnet manager: %w", err)
	}
	config, err := subnets.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the network's configuration: %w", err)
	}
	link := &backend.ExternalInterface{ExtAddr: address, IfaceAddr: address}
	kind, err := backend.NewManager(ctx, subnets, link).GetBackend(config.BackendType)
	if err != nil {
		return fmt.Errorf("start the backend: %w", err)
	}
	var group sync.WaitGroup
	network, err := kind.RegisterNetwork(ctx, &group, config)
	for err != nil && ctx.Err() == nil {
		pause(ctx, retryDelay)
		network, err = kind.RegisterNetwork(ctx, &group, config)
	}
	if err != nil {
		return fmt.Errorf("get the machine's subnet: %w", err)
	}
	if err := masquerade(ctx, config.Network, network.Lease()); err != nil {
		return err
	}
	if err := writeCNI(opts.CNIDir, network.Lease().Subnet.ToIPNet().String()); err != nil {
		return err
	}
	if err := subnets.CompleteLease(ctx, network.Lease(), &group); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("report the network: %w", err)
	}
	<-ctx.Done()
	group.Wait()
	return nil
}

// masquerade is Flannel's --ip-masq, which its manifests set: what pods send to others than pods leaves with the address of the machine.
// Pods thus reach the API server and the cloud's services also before the cloud has a route to them, or where it never gets one.
func masquerade(ctx context.Context, pods ip.IP4Net, machine *lease.Lease) error {
	var rules nftables.NFTablesManager
	if err := rules.Init(ctx); err != nil {
		return fmt.Errorf("masquerade what pods send: %w", err)
	}
	if err := rules.SetupAndEnsureMasqRules(ctx, pods, ip.IP4Net{}, ip.IP4Net{}, ip.IP6Net{}, ip.IP6Net{}, ip.IP6Net{}, machine, 0,
		false); err != nil {
		return fmt.Errorf("masquerade what pods send: %w", err)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// writeCNI configures the plugins that Flannel's own CNI plugin would call: a bridge, addresses of the subnet. The file appears at once,
// so that the container runtime never reads half of it.
func writeCNI(dir, subnet string) error {
	content, err := json.MarshalIndent(map[string]any{
		"cniVersion": "0.4.0", "name": "cbr0",
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
			// The plugin would hide pods of other machines from each other; masquerade does not.
			"ipMasq": false,
			"ipam": map[string]any{
				"type": "host-local", "subnet": subnet, "routes": []any{map[string]string{"dst": "0.0.0.0/0"}},
			},
		}},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the CNI configuration: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the CNI configuration: %w", err)
	}
	target := filepath.Join(dir, "10-flannel.conflist")
	if err := os.WriteFile(target+".new", content, 0o600); err != nil {
		return fmt.Errorf("write the CNI configuration: %w", err)
	}
	if err := os.Rename(target+".new", target); err != nil {
		return fmt.Errorf("write the CNI configuration: %w", err)
	}
	return nil
}
