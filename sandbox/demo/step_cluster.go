package demo

import (
	"context"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/manifest"
)

// controlPlaneStarts brings the sandbox up. It checks for the programs first: without them the rest is in vain.
func controlPlaneStarts(ctx context.Context, s *story) (string, error) {
	for _, program := range []string{managerProgram, initorProgram} {
		if _, err := os.Stat(filepath.Join(s.BinDir, program)); err != nil {
			return "", fmt.Errorf("find the programs to show (make build makes them): %w", err)
		}
	}
	var err error
	s.cluster, err = cluster.Start(ctx, cluster.Options{
		Dir: s.path("cluster"), Nodes: nodes, NodeKind: s.NodeKind, BinDir: s.BinDir, Kubernetes: s.Kubernetes, Progress: s.Progress,
	})
	if err != nil {
		return "", err
	}
	version, err := s.cluster.Client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask the API server's version: %w", err)
	}
	return fmt.Sprintf("Kubernetes %s at %s, cloud at %s", version.GitVersion, s.cluster.Config.Host, s.cluster.Cloud.URL), nil
}

// nodesJoin checks the Nodes as kubelets of an external cloud provider leave them.
func nodesJoin(ctx context.Context, s *story) (string, error) {
	list, err := s.clusterNodes(ctx)
	if err != nil {
		return "", err
	}
	if len(list) != nodes {
		return "", fmt.Errorf("%d nodes have joined, not %d", len(list), nodes)
	}
	var names []string
	for i := range list {
		node := &list[i]
		switch {
		case !isTainted(node):
			return "", fmt.Errorf("node %s has no taint %s", node.Name, cloudproviderapi.TaintExternalCloudProvider)
		case node.Spec.ProviderID != "":
			return "", fmt.Errorf("node %s has the provider ID %s already", node.Name, node.Spec.ProviderID)
		case node.Spec.PodCIDR == "":
			return "", fmt.Errorf("node %s has no pod CIDR", node.Name)
		}
		names = append(names, node.Name+" "+node.Spec.PodCIDR)
	}
	return strings.Join(names, ", ") + "; Ready, tainted, without provider ID", nil
}

func isTainted(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == cloudproviderapi.TaintExternalCloudProvider {
			return true
		}
	}
	return false
}

// cloudConfigIsMade runs the published script and creates what it prints in a dry run, with the secret instead of the mask: the demo does
// without kubectl, which the script needs otherwise.
func cloudConfigIsMade(ctx context.Context, s *story) (string, error) {
	const script = "cloud-config.sh"
	content, err := fs.ReadFile(s.Deploy, script)
	if err == nil {
		err = os.WriteFile(s.path(script), content, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("unpack the published script: %w", err)
	}
	masked, err := s.runProgram(ctx, "bash", s.path(script), "--dry-run")
	if err != nil {
		return "", err
	}
	secret := base64.StdEncoding.EncodeToString([]byte(cluster.AccessKeySecret))
	if err = s.create(ctx, []byte(strings.ReplaceAll(masked, "***", secret))); err != nil {
		return "", err
	}
	if _, err = s.cluster.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cloud-config", metav1.GetOptions{}); err != nil {
		return "", fmt.Errorf("read what the script has made: %w", err)
	}
	return "ConfigMap kube-system/cloud-config with access key and region " + cluster.Region, nil
}

//go:embed manifests
var manifests embed.FS

// createFrom creates the objects of one of the demo's manifests.
func (s *story) createFrom(ctx context.Context, name string) error {
	content, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return fmt.Errorf("read an embedded file: %w", err)
	}
	return s.create(ctx, content)
}

// create creates the objects of a manifest.
func (s *story) create(ctx context.Context, text []byte) error {
	_, err := manifest.Create(ctx, s.cluster.Config, text, func(*unstructured.Unstructured) bool { return true })
	return err
}
