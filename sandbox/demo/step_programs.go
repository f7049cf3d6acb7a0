package demo

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// The programs that the demo shows, by their names in BinDir. They run as users run them: in pods.
const (
	managerProgram = "cloud-controller-manager"
	initorProgram  = "provider-initor"
)

// managerSelector finds the pods of the published Deployment.
const managerSelector = "k8s-app=" + managerProgram

// podsSetProviderIDs runs the initializer in a pod on each node, with the command for workstations.
func podsSetProviderIDs(ctx context.Context, s *story) (string, error) {
	_, err := s.runProgram(ctx, filepath.Join(s.BinDir, initorProgram), "run", "--driver=job", "--image="+cluster.InitorImage,
		fmt.Sprintf("--timeout=%s", stepTimeout), "--kubeconfig="+s.cluster.Kubeconfig())
	if err != nil {
		return "", err
	}
	var ids []string
	for _, machine := range s.instances() {
		id, err := s.providerID(ctx, machine)
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, ", ") + ", by a pod on each node", nil
}

// runProgram runs a program to its end and returns its standard output. The error of one that
// fails has its last line of output.
func (s *story) runProgram(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "ACCESS_KEY_ID="+cluster.AccessKeyID, "ACCESS_KEY_SECRET="+cluster.AccessKeySecret, "REGION="+cluster.Region)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(stdout.String()+"\n"+stderr.String()), "\n")
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(program), err, lines[len(lines)-1])
	}
	return stdout.String(), nil
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

var (
	managerImage = regexp.MustCompile(`image: .*/cloud-controller-manager:.*`)
	managerFlag  = regexp.MustCompile(`(\n +- )--cluster-cidr=.*`)
)

// goneFlag shortens the minutes for which an instance must be missing before its Node is deleted: nobody watches a demo for so long.
const goneFlag = "--node-gone-over=10s"

// managerStarts applies the published manifest, in which only the image and the patience with missing instances are other ones, and
// waits until one of its pods leads and all are ready, which is what their probes of /readyz say.
func managerStarts(ctx context.Context, s *story) (string, error) {
	published, err := fs.ReadFile(s.Deploy, "ccm.yaml")
	if err != nil {
		return "", fmt.Errorf("read the published manifest: %w", err)
	}
	published = managerImage.ReplaceAll(published, []byte("image: "+cluster.ManagerImage))
	published = managerFlag.ReplaceAll(published, []byte("$0${1}"+goneFlag))
	if err = s.create(ctx, published); err != nil {
		return "", err
	}
	holder := ""
	err = s.until(ctx, func(ctx context.Context) (string, error) {
		if holder = s.leader(ctx); holder == "" {
			return "the lease kube-system/" + managerProgram + " has no holder", nil
		}
		deployment, failed := s.cluster.Client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, managerProgram, metav1.GetOptions{})
		if failed != nil || deployment.Status.ReadyReplicas < *deployment.Spec.Replicas {
			return fmt.Sprintf("%d pods of the cloud controller manager are ready", deployment.Status.ReadyReplicas), failed
		}
		return "", nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Deployment kube-system/%s is ready; leader is %s", managerProgram, holder), nil
}

// leader is the identity of the cloud controller manager that leads, "" when none does.
func (s *story) leader(ctx context.Context) string {
	lease, err := s.cluster.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, managerProgram, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "" // not yet
	}
	return *lease.Spec.HolderIdentity
}

// managers lists the pods of the cloud controller manager.
func (s *story) managers(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := s.cluster.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: managerSelector})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the cloud controller manager: %w", err)
	}
	return pods.Items, nil
}

// showLogs prints the ends of the logs of the cloud controller manager, which are likely to state the reason of a failure.
func (s *story) showLogs(ctx context.Context) {
	if s.cluster == nil {
		return
	}
	pods, _ := s.managers(ctx) // without the API server there are no logs
	for _, pod := range pods {
		options := &corev1.PodLogOptions{TailLines: new(int64(20))}
		log, err := s.cluster.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
		fmt.Fprintf(s.Progress, "-- last log lines of %s:\n%s\n", pod.Name, log)
		if err != nil {
			fmt.Fprintln(s.Progress, err)
		}
	}
}

// managerEnds deletes the Deployment and waits until its pods have ended.
func (s *story) managerEnds(ctx context.Context) error {
	err := s.cluster.Client.AppsV1().Deployments(metav1.NamespaceSystem).Delete(ctx, managerProgram, metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("delete the cloud controller manager: %w", err)
	}
	return s.until(ctx, func(ctx context.Context) (string, error) {
		pods, failed := s.managers(ctx)
		for _, pod := range pods {
			// That of the released machine ended with it, though the API server hears of it later.
			if _, runs := s.machineOf(pod.Spec.NodeName); runs {
				return "pod " + pod.Name + " is left", nil
			}
		}
		return "", failed
	})
}
