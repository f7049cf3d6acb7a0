package demo

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
)

// The programs that the demo shows, by their names in BinDir.
const (
	managerProgram = "cloud-controller-manager"
	initorProgram  = "provider-initor"
)

// providerIDsAreSet runs the initializer once for each node, as its BroadcastJob does.
func providerIDsAreSet(ctx context.Context, s *story) (string, error) {
	as, err := s.identify(ctx, "provider-initor.yaml")
	if err != nil {
		return "", err
	}
	var ids []string
	for _, machine := range s.instances() {
		environment := []string{
			"NODE_NAME=" + machine.NodeName, "KUBECONFIG=" + as.Kubeconfig, "METADATA_ENDPOINT=" + s.cluster.Cloud.MetadataURL(machine.ID),
		}
		if _, err := runProgram(ctx, filepath.Join(s.BinDir, initorProgram), nil, environment, nil); err != nil {
			return "", fmt.Errorf("node %s: %w", machine.NodeName, err)
		}
		id, err := s.providerID(ctx, machine)
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	return fmt.Sprintf("%s, as %s", strings.Join(ids, ", "), as.Account), nil
}

// providerID is that of a machine's Node, which must be the right one.
func (s *story) providerID(ctx context.Context, machine cluster.Machine) (string, error) {
	node, err := s.cluster.Client.CoreV1().Nodes().Get(ctx, machine.NodeName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read node %s: %w", machine.NodeName, err)
	}
	if !strings.HasSuffix(node.Spec.ProviderID, machine.RegionID+"."+machine.ID) {
		return "", fmt.Errorf("node %s has the provider ID %q, not %s.%s", node.Name, node.Spec.ProviderID, machine.RegionID, machine.ID)
	}
	return node.Spec.ProviderID, nil
}

// managerStarts starts the cloud controller manager with its own identity and waits until it leads and is healthy.
func managerStarts(ctx context.Context, s *story) (string, error) {
	as, err := s.identify(ctx, "ccm.yaml")
	if err != nil {
		return "", err
	}
	if s.managerPort, err = freeport.FindOne(ctx); err != nil {
		return "", err
	}
	cloud := s.cluster.Cloud
	endpoint := strings.TrimPrefix(cloud.URL, "http://")
	process, err := startProcess(ctx, filepath.Join(s.BinDir, managerProgram), []string{
		"--cloud-provider=alicloud",
		"--cloud-config=" + s.cloudConfig,
		"--kubeconfig=" + as.Kubeconfig,
		"--cluster-cidr=" + cluster.PodCIDR,
		"--leader-elect=true",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.managerPort),
		"--route-reconciliation-period=3m",
		goneFlag,
	}, []string{
		"SLB_ENDPOINT=" + endpoint, "NLB_ENDPOINT=" + endpoint, "VPC_ENDPOINT=" + endpoint, "ECS_ENDPOINT=" + endpoint,
		"ALICLOUD_CLIENT_SCHEME=HTTP",
		"METADATA_ENDPOINT=" + cloud.MetadataURL(s.instances()[0].ID),
	})
	if err != nil {
		return "", err
	}
	s.manager = process
	holder := ""
	err = s.until(ctx, func(ctx context.Context) (string, error) {
		if holder = s.leader(ctx); holder == "" {
			return noLeader, nil
		}
		return s.unhealthy(ctx), nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("leads as %s with the role of %s; /healthz answers over HTTP and HTTPS", holder, as.Account), nil
}

const noLeader = "the lease kube-system/" + managerProgram + " has no holder"

// leader is the identity of the cloud controller manager that leads, "" when none does.
func (s *story) leader(ctx context.Context) string {
	lease, err := s.cluster.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, managerProgram, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "" // not yet
	}
	return *lease.Spec.HolderIdentity
}

// unhealthy asks the manager's /healthz the way that probes of existing manifests do (HTTP) and the way of the stock ones (HTTPS), and
// returns what is wrong.
func (s *story) unhealthy(ctx context.Context) string {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		// The manager makes its own certificate; a kubelet's probe does not verify it either.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	for _, scheme := range []string{"http", "https"} {
		url := fmt.Sprintf("%s://127.0.0.1:%d/healthz", scheme, s.managerPort)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err.Error()
		}
		response, err := client.Do(request)
		if err != nil {
			return err.Error()
		}
		_ = response.Body.Close() // nothing is read from it
		if response.StatusCode != http.StatusOK {
			return fmt.Sprintf("%s answers %s", url, response.Status)
		}
	}
	return ""
}

// nodesAreInitialized waits until each Node shows what the cloud knows of its instance.
func nodesAreInitialized(ctx context.Context, s *story) (string, error) {
	machines := s.instances()
	err := s.until(ctx, func(ctx context.Context) (string, error) {
		list, err := s.clusterNodes(ctx)
		if err != nil {
			return "", err
		}
		for _, machine := range machines {
			i := slices.IndexFunc(list, func(node corev1.Node) bool { return node.Name == machine.NodeName })
			if i < 0 {
				return "", fmt.Errorf("node %s has left", machine.NodeName)
			}
			if missing := uninitialized(&list[i], machine); missing != "" {
				return missing, nil
			}
		}
		return "", nil
	})
	if err != nil {
		return "", err
	}
	var seen []string
	for _, machine := range machines {
		seen = append(seen, fmt.Sprintf("%s %s %s %s", machine.NodeName, machine.PrivateIP, machine.ZoneID, machine.InstanceType))
	}
	return strings.Join(seen, ", ") + "; no taint", nil
}

// uninitialized says what a Node still lacks, or returns an empty string.
func uninitialized(node *corev1.Node, machine cluster.Machine) string {
	address := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: machine.PrivateIP}
	if !slices.Contains(node.Status.Addresses, address) {
		return fmt.Sprintf("node %s has the addresses %v, without InternalIP %s", node.Name, node.Status.Addresses, machine.PrivateIP)
	}
	for label, want := range map[string]string{
		corev1.LabelTopologyRegion: machine.RegionID, corev1.LabelTopologyZone: machine.ZoneID,
		corev1.LabelInstanceTypeStable: machine.InstanceType,
	} {
		if got := node.Labels[label]; got != want {
			return fmt.Sprintf("node %s has the label %s=%q, not %q", node.Name, label, got, want)
		}
	}
	if isTainted(node) {
		return fmt.Sprintf("node %s has lost no taint", node.Name)
	}
	return ""
}
