package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestHeartbeatOf(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]time.Duration{0: time.Second, 3: time.Second, 50: time.Second, 1000: 20 * time.Second} {
		if got := heartbeatOf(Light, nodes); got != want {
			t.Errorf("%d nodes renew every %s, want %s", nodes, got, want)
		}
	}
}

func TestPodCIDROf(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]string{0: PodCIDR, 200: PodCIDR, 201: widePodCIDR, 5000: widePodCIDR} {
		if got := podCIDROf(nodes); got != want {
			t.Errorf("%d nodes get their pod CIDRs from %s, want %s", nodes, got, want)
		}
	}
}

func TestDirectoryIsLeftAsItWasFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files []string // in the directory beforehand; nil when it does not exist
		want  []string // afterwards; nil when it must not exist
	}{
		{"new", nil, nil},
		{"empty", []string{}, []string{}},
		{"with a foreign file", []string{"notes.txt"}, []string{"notes.txt"}},
		{"with what a killed sandbox left", []string{"emulator", ".lock", "notes.txt"}, []string{"notes.txt"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "dir")
			if tt.files != nil {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := openDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.publish([]byte("kubeconfig"), []byte("{}"), "http://127.0.0.1:1"); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "emulator")); err != nil || string(got) != "http://127.0.0.1:1\n" {
				t.Errorf("the file emulator holds %q, %v", got, err)
			}
			if err := f.remove(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, list(t, dir)); diff != "" {
				t.Errorf("what is left differs (-want +got):\n%s", diff)
			}
		})
	}
}

// list is the names in a directory, nil when it does not exist.
func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestDirectoryIsTakenOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDir(dir); err == nil {
		t.Error("two sandboxes share a directory")
	}
	if err := first.remove(); err != nil {
		t.Fatal(err)
	}
	next, err := openDir(dir)
	if err != nil {
		t.Fatalf("the directory is not free again: %v", err)
	}
	if err := next.remove(); err != nil {
		t.Error(err)
	}
}

func TestCloudConfig(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1"
	for kind, endpoint := range map[NodeKind]string{Light: url, Real: ""} {
		var got struct {
			Global struct {
				AccessKeyID, AccessKeySecret []byte // base64 in the file
				Region, VPCID, VSwitchID     string
				Endpoints                    map[string]string
			}
		}
		testkit.Check(t, json.Unmarshal(testkit.Must(cloudConfig(Options{NodeKind: kind}, url))(t), &got))
		g := got.Global
		want := []string{AccessKeyID, AccessKeySecret, Region, "vpc-emulator", "cn-hangzhou-a:vsw-a", endpoint}
		if diff := cmp.Diff(want,
			[]string{string(g.AccessKeyID), string(g.AccessKeySecret), g.Region, g.VPCID, g.VSwitchID, g.Endpoints["ecs"]}); diff != "" {
			t.Errorf("%s nodes (-want +got):\n%s", kind, diff)
		}
	}
}
