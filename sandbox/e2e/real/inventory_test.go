//go:build linux && real

package real

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inventory is what a sandbox might leave on the host: network namespaces, mounts, cgroups and processes.
type inventory map[string]bool

func takeInventory() (inventory, error) {
	all := inventory{}
	add := func(kind string, names []string) {
		for _, name := range names {
			all[kind+" "+name] = true
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		add("mount", []string{strings.Fields(line)[1]})
	}
	for kind, pattern := range map[string]string{
		"namespace": "/run/netns/sb*", "cgroup": "/sys/fs/cgroup/*/sb*", "cgroup of v2": "/sys/fs/cgroup/sb*",
		"file": "/var/log/containers/*", "CNI state": "/var/lib/cni/*", "file of containerd": "/run/containerd/*",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		add(kind, found)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, file := range processes {
		line, _ := os.ReadFile(file) // a process that has ended is none
		for _, program := range []string{"sandbox\x00", "containerd", "testserver", "/pause\x00"} {
			if strings.Contains(string(line), program) && strings.Contains(string(line), sandbox.dir) {
				add("process", []string{filepath.Dir(file) + " " + strings.ReplaceAll(string(line), "\x00", " ")})
			}
		}
	}
	return all, nil
}

// without lists what is in i and was not in before.
func (i inventory) without(before inventory) []string {
	var left []string
	for item := range i {
		if !before[item] {
			left = append(left, item)
		}
	}
	slices.Sort(left)
	return left
}
