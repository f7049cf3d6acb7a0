package flannel

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestCNIHasTheSubnetAndNoMasquerade(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "net.d")
	if err := writeCNI(dir, "10.244.3.0/24"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the directory holds %v, %v", entries, err)
	}
	content, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Plugins []struct {
			Type   string
			IPMasq bool
			IPAM   struct{ Type, Subnet string }
		}
	}
	if err := json.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	if p := config.Plugins[0]; p.Type != "bridge" || p.IPMasq || p.IPAM.Type != "host-local" || p.IPAM.Subnet != "10.244.3.0/24" {
		t.Errorf("plugin %+v", p)
	}
}

func TestAddressIsChecked(t *testing.T) {
	t.Parallel()
	if err := Run(t.Context(), Options{PublicIP: "here"}); err == nil {
		t.Error("an address that is none was accepted")
	}
}
