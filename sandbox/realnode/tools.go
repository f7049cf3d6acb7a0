//go:build linux

package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tools are the programs of other projects that machines run.
type Tools struct {
	Containerd, Ctr, Runc string
	// CNI is the directory of the plugins.
	CNI string
}

// cniDirs are where Debian and everybody else put the CNI plugins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin"}

// ErrNotRoot means that the process may not make machines.
var ErrNotRoot = errors.New("real machines need root: run as root, or use light nodes")

// FindTools looks for the programs on this host. The error names everything that is missing and how to install it.
func FindTools() (Tools, error) {
	if os.Geteuid() != 0 {
		return Tools{}, ErrNotRoot
	}
	var tools Tools
	var missing []string
	require := func(program, pkg string, at *string) {
		path, err := exec.LookPath(program)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s (apt-get install %s)", program, pkg))
			return
		}
		*at = path
	}
	var unused string
	require("containerd", "containerd", &tools.Containerd)
	require("ctr", "containerd", &tools.Ctr)
	require("containerd-shim-runc-v2", "containerd", &unused)
	require("runc", "runc", &tools.Runc)
	require("nft", "nftables", &unused) // kube-proxy calls it
	if tools.CNI = findCNI(); tools.CNI == "" {
		missing = append(missing, fmt.Sprintf("CNI plugins in %s (apt-get install containernetworking-plugins)", strings.Join(cniDirs, " or ")))
	}
	if len(missing) > 0 {
		return Tools{}, fmt.Errorf("real machines need programs that are missing:\n  %s", strings.Join(missing, "\n  "))
	}
	return tools, nil
}

func findCNI() string {
	for _, dir := range cniDirs {
		found := true
		for _, plugin := range []string{"bridge", "host-local", "loopback"} {
			if _, err := os.Stat(filepath.Join(dir, plugin)); err != nil {
				found = false
			}
		}
		if found {
			return dir
		}
	}
	return ""
}
