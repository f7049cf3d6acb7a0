//go:build account

package account

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAccount runs the stories on the cluster that the environment names; make e2e-cloud says how. Without CONFIRM=yes it only says what it
// would do.
func TestAccount(t *testing.T) {
	bin, kubeconfig, cloudConfig := os.Getenv("SANDBOX_BIN_DIR"), os.Getenv("KUBECONFIG"), os.Getenv("CLOUD_CONFIG")
	if bin == "" || kubeconfig == "" || cloudConfig == "" {
		t.Fatal("run make e2e-cloud with KUBECONFIG and CLOUD_CONFIG set to files of a test cluster")
	}
	connection, err := Connect(kubeconfig, cloudConfig, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	zones := os.Getenv("E2E_ZONES")
	if zones == "" {
		if zones, err = connection.Zones(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	users := &Users{
		Kubectl:     []string{filepath.Join(bin, "sandbox"), "kubectl", "--kubeconfig", kubeconfig},
		JoinCommand: os.Getenv("E2E_JOIN"), ReleaseCommand: os.Getenv("E2E_RELEASE"), OfficialManifest: os.Getenv("E2E_OFFICIAL"),
	}
	s := New(Options{
		Cluster: users, Client: connection.Client, Cloud: connection.Cloud, VPC: connection.VPC, Skip: users.Skips(), Zones: zones,
		Manager: Manager{
			Program: filepath.Join(bin, "cloud-controller-manager"), Kubeconfig: kubeconfig, CloudConfig: cloudConfig,
			Log: filepath.Join(t.TempDir(), "manager.log"), Process: EndWithParent(),
		},
		Image: cmp.Or(os.Getenv("E2E_IMAGE"), "registry.k8s.io/e2e-test-images/agnhost:2.53"), ClusterCIDR: os.Getenv("E2E_CLUSTER_CIDR"),
		// The manager deletes a Node only after minutes, and an NLB takes some, too.
		Poll: 5 * time.Second, Patience: 15 * time.Minute,
	})
	if os.Getenv("CLEAN") == "yes" {
		s.log = t.Logf
		if err := s.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := s.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("CONFIRM") != "yes" {
		t.Skip("nothing was made: set CONFIRM=yes to run the stories")
	}
	s.Run(t)
}
