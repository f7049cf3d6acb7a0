//go:build linux && real

package real

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// TestImages runs the images that make image makes, by the manifests in deploy/ as they are, on real machines.
func TestImages(t *testing.T) {
	archives := makeImages(t)
	t.Run("initializer without pod network and name server", func(t *testing.T) {
		m := machineWithoutNetwork(t, 4)
		m.load(t, archives["provider-initor"])
		initializerNeedsNeither(t, m)
	})
	t.Run("manager", func(t *testing.T) {
		for i := range nodeCount {
			machine(instanceID(i+1)).load(t, archives["cloud-controller-manager"])
			kubectl(t, "", "label", "node", nodeName(i+1), "node-role.kubernetes.io/control-plane=")
			t.Cleanup(func() { kubectl(t, "", "label", "node", nodeName(i+1), "node-role.kubernetes.io/control-plane-") })
		}
		kubectl(t, "", "cordon", "idc-1") // which does not have the image
		t.Cleanup(func() { kubectl(t, "", "uncordon", "idc-1") })
		managerServes(t)
	})
}

// makeImages makes the images for this machine, with the tag that the manifests name, and returns their archives by program.
func makeImages(t *testing.T) map[string]string {
	t.Helper()
	_, tag, _ := strings.Cut(manifestOf(t, "ccm.yaml"), "image: ghcr.io/alicloud-ccm/cloud-controller-manager:")
	tag, _, _ = strings.Cut(tag, "\n")
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "run", ".", "--arch", runtime.GOARCH, "--version", "v"+tag, "--out", dir)
	build.Dir = "../../../hack/image"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make image: %v\n%s", err, out)
	}
	archives := map[string]string{}
	for _, name := range []string{"provider-initor", "cloud-controller-manager"} {
		archives[name] = filepath.Join(dir, name+".tar")
	}
	return archives
}

func manifestOf(t *testing.T, name string) string {
	t.Helper()
	text, err := deploy.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// machine is the one of an instance, seen from the host.
type machine string

func (m machine) disk(path string) string {
	return filepath.Join(sandbox.dir, ".state/machines", string(m), path)
}

// load gives the machine's container runtime an image, as a user does without a registry.
func (m machine) load(t *testing.T, archive string) {
	t.Helper()
	socket := m.disk("run/containerd/containerd.sock")
	out, err := exec.CommandContext(t.Context(), "ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
	if err != nil {
		t.Fatalf("load %s into %s: %v\n%s", archive, m, err, out)
	}
}

// machineWithoutNetwork adds a machine on which no CNI plugin is ever configured: where Flannel would put that is a directory.
func machineWithoutNetwork(t *testing.T, i int) machine {
	t.Helper()
	id, name := instanceID(i), nodeName(i)
	order(t, http.MethodPut, "/_emulator/instances/"+id, fmt.Sprintf(`{"InstanceName":%q}`, name))
	t.Cleanup(func() {
		order(t, http.MethodDelete, "/_emulator/instances/"+id, "")
		kubectl(t, "", "delete", "node", name, "--ignore-not-found") // there may be no manager to do it
	})
	nodeIs(t, name, true)
	order(t, http.MethodPut, "/_emulator/instances/"+id, `{"Status":"Stopped"}`)
	nodeIs(t, name, false)
	m := machine(id)
	plugins := m.disk("etc/cni/net.d/10-flannel.conflist")
	if err := errors.Join(os.Remove(plugins), os.Mkdir(plugins, 0o755)); err != nil {
		t.Fatal(err)
	}
	order(t, http.MethodPut, "/_emulator/instances/"+id, `{"Status":"Running"}`)
	until(t, "the kubelet says that there is no pod network", func(ctx context.Context) string {
		node, err := sandbox.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && !strings.Contains(c.Message, "cni plugin not initialized") {
				return c.Message
			}
		}
		return ""
	})
	return m
}

// initializerNeedsNeither applies the initializer's manifest where the pods' name server never answers.
func initializerNeedsNeither(t *testing.T, m machine) {
	t.Helper()
	resolver, asked := silentResolver(t)
	question, err := at(t, string(m)).dial(t.Context(), "udp", resolver+":53")
	if err != nil {
		t.Fatal(err)
	}
	defer question.Close()
	until(t, "the name server hears the machine", func(context.Context) string {
		if _, err := io.WriteString(question, "who?"); err != nil {
			return err.Error()
		}
		if asked.Load() == 0 {
			return "nothing has arrived"
		}
		return ""
	})
	before := asked.Load()
	manifest := manifestOf(t, "provider-initor.yaml")
	changed := strings.Replace(manifest, "dnsPolicy: Default\n", "dnsPolicy: None\n      dnsConfig: {nameservers: ["+resolver+"]}\n", 1)
	if changed == manifest {
		t.Fatal("the manifest has no dnsPolicy any more")
	}
	apply(t, changed)
	until(t, "the node has its provider ID", func(ctx context.Context) string {
		node, err := sandbox.client.CoreV1().Nodes().Get(ctx, nodeName(4), metav1.GetOptions{})
		if err != nil || node.Spec.ProviderID == "" {
			return fmt.Sprint("it has none: ", err)
		}
		if want := cluster.Region + "." + string(m); node.Spec.ProviderID != want {
			t.Fatalf("provider ID %q, want %q", node.Spec.ProviderID, want)
		}
		return ""
	})
	until(t, "its pod has succeeded at the first try", func(ctx context.Context) string {
		pods, err := podsOf(ctx, metav1.NamespaceSystem, "app.kubernetes.io/name=provider-initor")
		if err != nil {
			return err.Error()
		}
		for _, pod := range pods {
			if pod.Spec.NodeName != nodeName(4) {
				continue
			}
			if pod.Status.Phase != corev1.PodSucceeded {
				return string(pod.Status.Phase)
			}
			done := pod.Status.ContainerStatuses[0]
			t.Logf("%s, image %s", done.State.Terminated.Message, done.ImageID)
			if done.RestartCount > 0 {
				t.Errorf("its container was started again %d times", done.RestartCount)
			}
			return ""
		}
		return "there is none"
	})
	if n := asked.Load() - before; n > 0 {
		t.Errorf("it asked the name server %d times", n)
	}
}

// silentResolver is a name server in the VPC that takes questions and never answers. asked counts them.
func silentResolver(t *testing.T) (address string, asked *atomic.Int64) {
	t.Helper()
	const inVPC = "10.1.255.250" // of vpcClient
	var conn net.PacketConn
	err := at(t, vpcClient).do(func() (err error) {
		conn, err = (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", inVPC+":53")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed
	asked = &atomic.Int64{}
	go func() {
		for buffer := make([]byte, 512); ; asked.Add(1) {
			if _, _, err := conn.ReadFrom(buffer); err != nil {
				return
			}
		}
	}()
	return inVPC, asked
}

// managerServes applies the manager's manifest, with the addresses of this cluster and cloud, and lets it serve a Service.
func managerServes(t *testing.T) {
	t.Helper()
	configMapOfUsers(t)
	manifest := strings.Replace(manifestOf(t, "ccm.yaml"), cluster.PodCIDR, podCIDR, 1)
	// The manifest leaves the endpoints to their public names.
	env := "        env:\n        - {name: ALICLOUD_CLIENT_SCHEME, value: HTTP}\n"
	for _, product := range []string{"ECS", "SLB", "VPC"} {
		env += fmt.Sprintf("        - {name: %s_ENDPOINT, value: %s}\n", product, cluster.OpenAPIAddress)
	}
	apply(t, strings.Replace(manifest, "        args:\n        - --cloud-provider", env+"        args:\n        - --cloud-provider", 1))
	kubectl(t, "", "-n", "kube-system", "rollout", "status", "deployment/cloud-controller-manager", "--timeout=90s")
	apply(t, web)
	answers(t, at(t, internetClient), "http://"+vipOf(t, "web"))
	pods, err := podsOf(t.Context(), metav1.NamespaceSystem, "k8s-app=cloud-controller-manager")
	if err != nil || len(pods) != 2 {
		t.Fatalf("%d pods of the manager, %v; want 2", len(pods), err)
	}
	for _, pod := range pods {
		t.Logf("%s on %s, image %s", pod.Name, pod.Spec.NodeName, pod.Status.ContainerStatuses[0].ImageID)
	}
}
