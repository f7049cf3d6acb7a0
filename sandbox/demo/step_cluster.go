package demo

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// controlPlaneStarts brings the sandbox up. It checks for the programs first: without them the rest is in vain.
func controlPlaneStarts(ctx context.Context, s *story) (string, error) {
	programs := map[string]string{managerProgram: "build", initorProgram: "build"}
	if s.NodeKind == cluster.Real {
		programs["kubectl"] = "kubectl"
	}
	for program, target := range programs {
		if _, err := os.Stat(filepath.Join(s.BinDir, program)); err != nil {
			return "", fmt.Errorf("find the programs to show (make %s makes it): %w", target, err)
		}
	}
	var err error
	s.cluster, err = cluster.Start(ctx, cluster.Options{
		Dir: s.path("cluster"), Nodes: nodes, NodeKind: s.NodeKind, Kubernetes: s.Kubernetes, Progress: s.Progress,
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

// cloudConfigIsMade runs the published script, as a user does, and takes what it made as the program's configuration file. On light
// nodes, which do without kubectl, that is what the script prints in a dry run, with the secret instead of the mask.
func cloudConfigIsMade(ctx context.Context, s *story) (string, error) {
	const key = "cloud-config.conf"
	script, err := s.unpack("cloud-config.sh", 0o700)
	if err != nil {
		return "", err
	}
	environment, err := s.kubectlEnv()
	if err != nil {
		return "", err
	}
	environment = append(environment,
		"ACCESS_KEY_ID="+cluster.AccessKeyID, "ACCESS_KEY_SECRET="+cluster.AccessKeySecret, "REGION="+cluster.Region)
	if s.NodeKind == cluster.Real {
		_, err = runProgram(ctx, "bash", []string{script}, environment, nil)
	} else {
		var masked string
		masked, err = runProgram(ctx, "bash", []string{script, "--dry-run"}, environment, nil)
		if err == nil {
			secret := base64.StdEncoding.EncodeToString([]byte(cluster.AccessKeySecret))
			err = s.create(ctx, []byte(strings.ReplaceAll(masked, "***", secret)))
		}
	}
	if err != nil {
		return "", err
	}
	config, err := s.cluster.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cloud-config", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read what the script has made: %w", err)
	}
	if config.Data[key] == "" {
		return "", fmt.Errorf("ConfigMap kube-system/cloud-config has no %s", key)
	}
	s.cloudConfig = s.path(key)
	if err := os.WriteFile(s.cloudConfig, []byte(config.Data[key]), 0o600); err != nil {
		return "", fmt.Errorf("write the cloud config: %w", err)
	}
	return "ConfigMap kube-system/cloud-config with access key and region " + cluster.Region, nil
}

// unpack copies a file of the published ones to disk.
func (s *story) unpack(name string, mode os.FileMode) (string, error) {
	content, err := readFile(s.Deploy, name)
	if err != nil {
		return "", err
	}
	path := s.path(name)
	if err := os.WriteFile(path, content, mode); err != nil {
		return "", fmt.Errorf("unpack a published file: %w", err)
	}
	return path, nil
}
