package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// On real machines this project's programs run as users run them: in pods, from their images.

// managerSelector finds the pods of the published Deployment.
const managerSelector = "k8s-app=" + managerProgram

// podsSetProviderIDs runs the initializer in a pod on each node, with the command for workstations.
func podsSetProviderIDs(ctx context.Context, s *story) (string, error) {
	environment, err := s.kubectlEnv()
	if err != nil {
		return "", err
	}
	_, err = runProgram(ctx, filepath.Join(s.BinDir, initorProgram), []string{
		"run", "--driver=job", "--image=" + cluster.InitorImage, fmt.Sprintf("--timeout=%s", stepTimeout),
	}, environment, nil)
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

var (
	managerImage = regexp.MustCompile(`image: .*/cloud-controller-manager:.*`)
	managerFlag  = regexp.MustCompile(`(\n +- )--cluster-cidr=.*`)
)

// goneFlag shortens the minutes for which an instance must be missing before its Node is deleted: nobody watches a demo for so long.
const goneFlag = "--node-gone-over=10s"

// managerStartsInPods applies the published manifest, in which only the image and the patience with missing instances are other ones, and
// waits until one of its pods leads and all are ready, which is what their probes of /readyz say.
func managerStartsInPods(ctx context.Context, s *story) (string, error) {
	manifest, err := readFile(s.Deploy, "ccm.yaml")
	if err != nil {
		return "", err
	}
	manifest = managerImage.ReplaceAll(manifest, []byte("image: "+cluster.ManagerImage))
	manifest = managerFlag.ReplaceAll(manifest, []byte("$0${1}"+goneFlag))
	if _, err = s.runKubectl(ctx, manifest, "apply", "-f", "-"); err != nil {
		return "", err
	}
	s.manager = &podManager{s}
	holder := ""
	err = s.until(ctx, func(ctx context.Context) (string, error) {
		if holder = s.leader(ctx); holder == "" {
			return noLeader, nil
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

// podManager is the cloud controller manager as its Deployment runs it.
type podManager struct{ *story }

// ended is nil: what ends is started again.
func (m *podManager) ended() error { return nil }

// leading is the pod that leads: the identity of a leader begins with its host name, which on the host's network is the node's.
func (m *podManager) leading(ctx context.Context) (corev1.Pod, error) {
	node, _, _ := strings.Cut(m.leader(ctx), "_")
	pods, err := m.cluster.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: managerSelector, FieldSelector: "spec.nodeName=" + node,
	})
	if err != nil {
		return corev1.Pod{}, fmt.Errorf("find the pod of the cloud controller manager: %w", err)
	}
	if len(pods.Items) != 1 {
		return corev1.Pod{}, fmt.Errorf("the leader's node %q has %d pods of the cloud controller manager", node, len(pods.Items))
	}
	return pods.Items[0], nil
}

// pid finds the process by its cgroup, which is named for the pod: this host sees the processes of all machines.
func (m *podManager) pid(ctx context.Context) (int, error) {
	pod, err := m.leading(ctx)
	if err != nil {
		return 0, err
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, fmt.Errorf("find the cloud controller manager: %w", err)
	}
	for _, file := range processes {
		cgroups, _ := os.ReadFile(file) // a process that has ended is none
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if bytes.Contains(cgroups, []byte(pod.UID)) && bytes.Contains(command, []byte(managerProgram)) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, fmt.Errorf("pod %s of the cloud controller manager has no process", pod.Name)
}

func (m *podManager) tail(ctx context.Context) string {
	log, err := m.runKubectl(ctx, nil, "-n", metav1.NamespaceSystem, "logs", "--prefix", "--tail=20", "-l", managerSelector)
	if err != nil {
		return err.Error()
	}
	return log
}

// stop deletes the Deployment and waits until its pods have ended.
func (m *podManager) stop(ctx context.Context) (string, error) {
	err := m.cluster.Client.AppsV1().Deployments(metav1.NamespaceSystem).Delete(ctx, managerProgram, metav1.DeleteOptions{})
	if err != nil {
		return "", fmt.Errorf("delete the cloud controller manager: %w", err)
	}
	err = m.until(ctx, func(ctx context.Context) (string, error) {
		pods, failed := m.cluster.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: managerSelector})
		if failed != nil {
			return "", errors.Join(errors.New("wait for the end of the cloud controller manager"), failed)
		}
		for _, pod := range pods.Items {
			// That of the released machine ended with it, though the API server hears of it later.
			if _, runs := m.machineOf(pod.Spec.NodeName); runs {
				return "pod " + pod.Name + " is left", nil
			}
		}
		return "", nil
	})
	return "its pods are gone", err
}
