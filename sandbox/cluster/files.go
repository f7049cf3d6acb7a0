package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// Names inside the sandbox's directory. The first three are for other programs.
const (
	kubeconfigFile  = "kubeconfig"        // the administrator's
	emulatorFile    = "emulator"          // the emulator's URL
	cloudConfigFile = "cloud-config.conf" // for the cloud controller manager's --cloud-config
	stateDir        = ".state"            // everything else
	lockFile        = ".lock"
	controlPlaneLog = "control-plane.log" // in the state directory
)

// files are the sandbox's directory and what it has written there.
type files struct {
	dir     string // absolute
	state   string
	made    bool // the directory did not exist before
	lock    *fileutil.LockedFile
	log     *os.File
	written []string
}

// errInUse means that another sandbox runs in a directory.
var errInUse = errors.New("another sandbox runs in it")

// openDir makes the directory ready and takes it, so that no second sandbox can use it. What a sandbox that was killed has left there is
// removed.
func openDir(dir string) (*files, error) {
	if dir == "" {
		return nil, errors.New("open the sandbox's directory: no directory given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the sandbox's directory: %w", err)
	}
	f := &files{dir: dir, state: filepath.Join(dir, stateDir)}
	if _, err = os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		f.made = true
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the sandbox's directory: %w", err)
	}
	f.lock, err = fileutil.TryLockFile(f.path(lockFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("open the sandbox's directory %s: %w", dir, errInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the sandbox's directory: %w", err)
	}
	if err := f.openState(); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

func (f *files) openState() error {
	if err := os.RemoveAll(f.state); err != nil {
		return fmt.Errorf("remove what an earlier sandbox has left: %w", err)
	}
	if err := os.Mkdir(f.state, 0o700); err != nil {
		return fmt.Errorf("make the sandbox's state directory: %w", err)
	}
	var err error
	if f.log, err = os.Create(f.statePath(controlPlaneLog)); err != nil {
		return fmt.Errorf("open the control plane's log: %w", err)
	}
	return nil
}

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }

// statePath is a path below the directory of what only the sandbox itself uses.
func (f *files) statePath(name string) string { return filepath.Join(f.state, name) }

// publish writes the files that other programs read.
func (f *files) publish(kubeconfig, cloudConfig []byte, emulatorURL string) error {
	return errors.Join(
		f.write(kubeconfigFile, kubeconfig),
		f.write(emulatorFile, []byte(emulatorURL+"\n")),
		f.write(cloudConfigFile, cloudConfig))
}

// write puts a file into place at once: whoever waits for it never reads half of it.
func (f *files) write(name string, content []byte) error {
	target := f.path(name)
	temporary := filepath.Join(f.state, name)
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f.written = append(f.written, target)
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// remove leaves the directory as it was found.
func (f *files) remove() error {
	var errs []error
	if f.log != nil {
		errs = append(errs, f.log.Close())
	}
	errs = append(errs, os.RemoveAll(f.state))
	for _, file := range f.written {
		if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	// The lock file goes before the lock: whoever takes the lock next finds a file of its own.
	errs = append(errs, os.Remove(f.path(lockFile)), f.lock.Close())
	if f.made {
		errs = append(errs, os.Remove(f.dir))
	}
	return errors.Join(errs...)
}
