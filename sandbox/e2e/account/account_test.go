//go:build account

package account

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAccount runs the stories on the cluster that the environment names; make e2e-cloud says how. Without CONFIRM=yes it only says what it
// would do.
func TestAccount(t *testing.T) {
	o, err := optionsFromEnvironment(t.Context(), filepath.Join(t.TempDir(), "manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	s := New(o)
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
	if os.Getenv("CONFIRM") == "yes" {
		s.Run(t)
		return
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatalf("the scenarios cannot run here: %v", err)
	}
	t.Skip("nothing was created: set CONFIRM=yes to run the scenarios")
}

func optionsFromEnvironment(ctx context.Context, log string) (Options, error) {
	bin, kubeconfig, cloudConfig := os.Getenv("SANDBOX_BIN_DIR"), os.Getenv("KUBECONFIG"), os.Getenv("CLOUD_CONFIG")
	program := filepath.Join(bin, "cloud-controller-manager")
	if dir := os.Getenv("E2E_SANDBOX"); dir != "" {
		return InSandbox(ctx, dir, program, log)
	}
	connection, err := Connect(kubeconfig, cloudConfig, os.Getenv)
	if err != nil {
		return Options{}, err
	}
	zones := os.Getenv("E2E_ZONES")
	if zones == "" {
		if zones, err = connection.Zones(ctx); err != nil {
			return Options{}, err
		}
	}
	users := &Users{
		Kubectl:     []string{filepath.Join(bin, "kubectl"), "--kubeconfig", kubeconfig},
		JoinCommand: os.Getenv("E2E_JOIN"), ReleaseCommand: os.Getenv("E2E_RELEASE"), OfficialManifest: os.Getenv("E2E_OFFICIAL"),
	}
	return Options{
		Cluster: users, Client: connection.Client, Cloud: connection.Cloud, VPC: connection.VPC, Skip: users.Skips(), Zones: zones,
		Manager: Manager{Program: program, Kubeconfig: kubeconfig, CloudConfig: cloudConfig, Log: log},
		Image:   cmp.Or(os.Getenv("E2E_IMAGE"), "registry.k8s.io/e2e-test-images/agnhost:2.53"), ClusterCIDR: os.Getenv("E2E_CLUSTER_CIDR"),
		// The manager deletes a Node only after minutes, and an NLB takes some, too.
		Poll: 5 * time.Second, Patience: 15 * time.Minute,
	}, nil
}
