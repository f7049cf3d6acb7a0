package realnode

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// inotifyEach is how many inotify instances a machine has open: six of the kubelet and one of containerd, as measured without pods, and one
// to spare.
const inotifyEach = 8

// diskEach is how many bytes the disk of a machine takes: 320 MB with the images of this project unpacked, as measured, and as much again
// for those that its pods pull.
const diskEach = 640 << 20

// CheckHost returns what this host lacks for so many machines whose cgroups are below one ("/name") and whose disks are in a directory. A
// machine that lacks it never becomes a node that is ready, and only its logs say why.
func CheckHost(machines int, cgroup, dir string) error {
	room := checkDisk(uint64(machines)*diskEach, dir) //nolint:gosec // a few
	return errors.Join(checkInotify(machines*inotifyEach), checkCgroup(cgroup), room)
}

func checkDisk(needed uint64, dir string) error {
	var host unix.Statfs_t
	if err := unix.Statfs(dir, &host); err != nil {
		return fmt.Errorf("read how much room is left in %s: %w", dir, err)
	}
	if left := host.Bavail * uint64(host.Bsize); left < needed { //nolint:gosec // a block has a size
		return fmt.Errorf("real machines need about %d MB in %s, and %d are left: free some, or choose another place with --dir",
			needed>>20, dir, left>>20)
	}
	return nil
}

// checkInotify opens as many instances as the machines need: only the kernel knows how many other programs of the user have open.
func checkInotify(needed int) error {
	for n := range needed {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return fmt.Errorf("real machines need about %d inotify instances, and the host has %d left (%w): "+
				"sysctl fs.inotify.max_user_instances=1024", needed, n, err)
		}
		defer unix.Close(fd) //nolint:errcheck // it was only tried
	}
	return nil
}

// checkCgroup makes a cgroup in each hierarchy and removes it.
func checkCgroup(name string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	if len(hierarchies) == 0 {
		return errors.New("real machines need cgroups, and no cgroup file system is mounted: mount -t cgroup2 none /sys/fs/cgroup")
	}
	if err = makeCgroup(name); err != nil {
		return errors.Join(fmt.Errorf("real machines need cgroups that root may make "+
			"(in a container: start it with --privileged and --cgroupns=host): %w", err), removeCgroup(name))
	}
	return removeCgroup(name)
}
