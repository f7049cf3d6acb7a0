//go:build linux && real

package real

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// leftBehind lists what a sandbox in a directory has on the host: network namespaces, mounts, cgroups, processes, files and its record.
// Other sandboxes may run there meanwhile; what has the directory or its name in it is this one's.
func leftBehind(dir string) ([]string, error) {
	name := cluster.NameOf(dir)
	var left []string
	for kind, pattern := range map[string]string{
		"namespace": "/run/netns/" + name + "-*", "cgroup": "/sys/fs/cgroup/*/" + name, "cgroup of v2": "/sys/fs/cgroup/" + name,
		"record": "/run/*/" + name, "file": filepath.Join(dir, "*"), "hidden file": filepath.Join(dir, ".*"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			left = append(left, kind+" "+path)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) || strings.Contains(line, "/"+name+"-") {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	processes, err := processesIn(dir)
	left = append(left, processes...)
	slices.Sort(left)
	return left, err
}

// processesIn lists processes that mention a directory or have it mounted.
func processesIn(dir string) ([]string, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, process := range all {
		if filepath.Base(process) == strconv.Itoa(os.Getpid()) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(process, "cmdline")) // a process that has ended is none
		mounts, _ := os.ReadFile(filepath.Join(process, "mounts"))
		if strings.Contains(string(line), dir) || strings.Contains(string(mounts), dir) {
			found = append(found, "process "+process+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found, nil
}

// hostFiles are places of the host in which programs of the machines write when they take it for theirs.
func hostFiles() []string {
	var files []string
	for _, pattern := range []string{"/var/log/containers/*", "/var/log/pods/*", "/var/lib/cni/*", "/var/lib/kubelet/*", "/run/containerd/*",
		"/run/flannel/*"} {
		found, _ := filepath.Glob(pattern) // the patterns are good
		files = append(files, found...)
	}
	return files
}
