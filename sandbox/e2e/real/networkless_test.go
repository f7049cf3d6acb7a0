//go:build linux && real

package real

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// TestInitializerNeedsNoNetwork: a machine joins whose pod network never comes and whose name server never answers. Its initializer works
// at the first try, and asks for no name.
func TestInitializerNeedsNoNetwork(t *testing.T) {
	const joining = nodeCount + 2
	id, name := instanceID(joining), nodeName(joining)
	withoutPodNetwork(t, id, name)
	resolver, asked := silentResolver(t, id)

	manifest, err := deploy.Files.ReadFile("provider-initor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(manifest), "dnsPolicy: Default\n", "dnsPolicy: None\n      dnsConfig: {nameservers: ["+resolver+"]}\n",
		1)
	if changed == string(manifest) {
		t.Fatal("the manifest has no dnsPolicy any more")
	}
	apply(t, replaceImage(changed, cluster.InitorImage))
	until(t, "the node has its provider ID", func(ctx context.Context) string {
		node, err := sandbox.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil || node.Spec.ProviderID == "" {
			return fmt.Sprint("it has none: ", err)
		}
		if want := cluster.Region + "." + id; node.Spec.ProviderID != want {
			t.Fatalf("provider ID %q, want %q", node.Spec.ProviderID, want)
		}
		return ""
	})
	until(t, "its pod has succeeded", func(ctx context.Context) string {
		pods, err := podsOf(ctx, metav1.NamespaceSystem, "app.kubernetes.io/name=provider-initor")
		if err != nil {
			return err.Error()
		}
		for _, pod := range pods {
			if pod.Spec.NodeName != name {
				continue
			}
			if pod.Status.Phase != corev1.PodSucceeded {
				return string(pod.Status.Phase)
			}
			if n := pod.Status.ContainerStatuses[0].RestartCount; n > 0 {
				t.Errorf("its container was started again %d times", n)
			}
			return ""
		}
		return "there is none"
	})
	if n := asked.Load(); n > 0 {
		t.Errorf("it asked the name server %d times", n)
	}
}

// withoutPodNetwork adds a machine and takes its CNI configuration away, so that it is as before Flannel's first start.
func withoutPodNetwork(t *testing.T, id, name string) {
	t.Helper()
	order(t, http.MethodPut, "/_emulator/instances/"+id, fmt.Sprintf(`{"InstanceName":%q}`, name))
	t.Cleanup(func() {
		order(t, http.MethodDelete, "/_emulator/instances/"+id, "")
		kubectl(t, "", "delete", "node", name, "--ignore-not-found") // there may be no manager to do it
	})
	nodeIs(t, name, true)
	order(t, http.MethodPost, "/_sandbox/machines/"+id+"/stop/flannel", "")
	if err := os.Remove(filepath.Join(sandbox.dir, ".state/machines", id, "etc/cni/net.d/10-flannel.conflist")); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"stop", "start"} { // a runtime that has once read a configuration keeps it
		order(t, http.MethodPost, "/_sandbox/machines/"+id+"/"+verb+"/containerd", "")
	}
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
}

// silentResolver is a name server in the VPC that the machine reaches and that never answers. asked counts the questions.
func silentResolver(t *testing.T, machine string) (address string, asked *atomic.Int64) {
	t.Helper()
	const (
		inVPC = "10.1.255.250" // of vpcClient
		knock = "is anybody there?"
	)
	var server net.PacketConn
	err := at(t, vpcClient).do(func() (err error) {
		server, err = (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", inVPC+":53")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // which ends the loop below
	asked = &atomic.Int64{}
	var heard atomic.Bool
	go func() {
		buffer := make([]byte, 512)
		for {
			n, _, err := server.ReadFrom(buffer)
			switch {
			case err != nil:
				return
			case string(buffer[:n]) == knock:
				heard.Store(true)
			default:
				asked.Add(1)
			}
		}
	}()
	door, err := at(t, machine).dial(t.Context(), "udp", inVPC+":53")
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	until(t, "the name server hears the machine", func(context.Context) string {
		if _, err := io.WriteString(door, knock); err != nil {
			return err.Error()
		}
		if !heard.Load() {
			return "nothing has arrived"
		}
		return ""
	})
	return inVPC, asked
}
