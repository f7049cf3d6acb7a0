package realnode

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupTimeout bounds the wait for the kernel to let go of a cgroup whose last process has just ended.
const cgroupTimeout = 10 * time.Second

// cgroupHierarchies are the mount points of all cgroup hierarchies of the host: one for each controller (v1), one for all (v2), or both.
func cgroupHierarchies() ([]string, error) {
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("list the cgroup hierarchies: %w", err)
	}
	defer file.Close()
	var dirs []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 2 && (f[2] == "cgroup" || f[2] == "cgroup2") {
			dirs = append(dirs, f[1])
		}
	}
	return dirs, nil
}

// makeCgroup makes a cgroup ("/a/b") in every hierarchy, ready for a kubelet to use as its root.
func makeCgroup(name string) error {
	dirs, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		parent := dir
		for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
			delegateControllers(parent)
			child := filepath.Join(parent, part)
			if err := os.MkdirAll(child, 0o755); err != nil {
				return fmt.Errorf("make cgroup %s: %w", name, err)
			}
			// A new cpuset (v1) is empty, and no process can enter it.
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				if all, err := os.ReadFile(filepath.Join(parent, file)); err == nil && strings.HasSuffix(dir, "cpuset") {
					if err := os.WriteFile(filepath.Join(child, file), all, 0o600); err != nil {
						return fmt.Errorf("fill cgroup %s: %w", name, err)
					}
				}
			}
			parent = child
		}
		delegateControllers(parent)
	}
	return nil
}

// delegateControllers lets the children of a v2 cgroup have its controllers. Those that cannot be given on stay; the kubelet says which
// ones it misses.
func delegateControllers(dir string) {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return // v1
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
	}
}

// RemoveLeftovers removes the cgroup ("/name") of a fleet whose process was killed.
func RemoveLeftovers(cgroup string) error { return removeCgroup(cgroup) }

// removeCgroup kills what runs in a cgroup and removes it with all below it, from every hierarchy.
func removeCgroup(name string) error {
	dirs, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	var errs []error
	deadline := time.Now().Add(cgroupTimeout)
	for _, dir := range dirs {
		for {
			err := removeTree(filepath.Join(dir, name))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				errs = append(errs, fmt.Errorf("remove cgroup %s: %w", name, err))
				break
			}
			time.Sleep(socketPoll) //nolint:forbidigo // nothing signals the end of a cgroup; bounded by the deadline
		}
	}
	return errors.Join(errs...)
}

// removeTree removes a cgroup directory from the leaves up. Files in it are the kernel's: only directories can be removed.
func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		if err := killAll(filepath.Join(dir, "cgroup.procs")); err != nil {
			return err
		}
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// killAll kills the processes that a cgroup.procs file lists.
func killAll(file string) error {
	list, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.FieldsSeq(string(list)) {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended by itself
		}
	}
	return nil
}
