package realnode

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ownDirs are the directories of which each machine has its own instead of the host's.
var ownDirs = []string{"/run", "/var/lib", "/var/log"}

// mountDisk gives the mount namespace of the caller the directories of a machine, and a /proc that shows its processes only. /etc is the
// host's with the machine's changes on top.
func mountDisk(disk string) error {
	// First cut the namespace off from the host's, or the host would see every mount; then let containers of the machine follow its.
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := mount("", "/", "", unix.MS_REC|propagation, ""); err != nil {
			return err
		}
	}
	upper, work := filepath.Join(disk, "etc"), filepath.Join(disk, "etc.work")
	mounts := []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir=" + upper + ",workdir=" + work},
	}
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the machine's disk: %w", err)
		}
	}
	for _, m := range mounts {
		if err := mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return err
		}
	}
	for _, dir := range ownDirs {
		if err := mount(filepath.Join(disk, dir), dir, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
