package flannel

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/lease"
	"golang.org/x/sys/unix"
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

// TestPodsAreMasqueradedOutsideOnly writes the rules into a network namespace of its own, twice, as a program that starts again does.
func TestPodsAreMasqueradedOutsideOnly(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nft"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and the program nft")
	}
	pods := ip.IP4Net{IP: ip.MustParseIP4("10.244.0.0"), PrefixLen: 16}
	machine := &lease.Lease{Subnet: ip.IP4Net{IP: ip.MustParseIP4("10.244.3.0"), PrefixLen: 24}}
	runtime.LockOSThread() // never unlocked: the thread ends with the test instead of serving others from the namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := masquerade(t.Context(), pods, machine); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "nft", "list", "table", "ip", "flannel-ipv4").CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
	for _, want := range []string{
		"ip saddr 10.244.3.0/24 ip daddr 10.244.0.0/16 return", "ip saddr 10.244.0.0/16 ip daddr != 224.0.0.0/4 masquerade",
	} {
		if times := strings.Count(string(out), want); times != 1 {
			t.Errorf("%q is there %d times, want once:\n%s", want, times, out)
		}
	}
}
