package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/vpcnet"
)

// recordsDir has a file for each sandbox with real machines that runs or was killed. Its name is the sandbox's, which namespaces and
// cgroups begin with, and it holds the sandbox's directory. Whoever runs has it locked; the kernel unlocks the files of the dead.
const recordsDir = "/run/cloud-provider-alicloud-sandbox"

// takeRecord makes this sandbox known, before it makes anything that could be left behind. The file goes with remove.
func takeRecord(name, dir string) (*fileutil.LockedFile, error) {
	if err := os.MkdirAll(recordsDir, 0o700); err != nil {
		return nil, fmt.Errorf("record the sandbox: %w", err)
	}
	path := filepath.Join(recordsDir, name)
	for {
		// Somebody else holds it only to clean up, for a moment: the sandbox's directory is locked, too.
		file, err := fileutil.LockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("record the sandbox: %w", err)
		}
		if !isAt(file, path) {
			_ = file.Close() // whoever cleaned up has removed it meanwhile
			continue
		}
		if _, err := file.WriteString(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("record the sandbox: %w", err), removeRecord(file))
		}
		return file, nil
	}
}

func isAt(file *fileutil.LockedFile, path string) bool {
	have, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(have, there)
}

// removeRecord removes the file before its lock: whoever gets the lock next finds that it is gone.
func removeRecord(file *fileutil.LockedFile) error {
	return errors.Join(os.Remove(file.Name()), file.Close())
}

// Clean removes what killed sandboxes with real machines have left on this host: namespaces, cgroups and files. Processes and mounts of
// theirs have ended with them. It leaves alone those that run, and returns the directories of the others.
func Clean() ([]string, error) {
	records, err := filepath.Glob(filepath.Join(recordsDir, "*"))
	if err != nil {
		return nil, fmt.Errorf("find killed sandboxes: %w", err)
	}
	var cleaned []string
	var errs []error
	for _, path := range records {
		file, err := fileutil.TryLockFile(path, os.O_RDWR, 0o600)
		if errors.Is(err, fileutil.ErrLocked) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read the record %s: %w", path, err))
			continue
		}
		dir, err := cleanUp(file, path)
		if err != nil {
			errs = append(errs, fmt.Errorf("remove what the sandbox in %s has left: %w", dir, err))
		} else if dir != "" {
			cleaned = append(cleaned, dir)
		}
	}
	return cleaned, errors.Join(errs...)
}

// cleanUp removes what the sandbox of a record has left. The record goes last: what fails is tried again next time.
func cleanUp(record *fileutil.LockedFile, path string) (string, error) {
	content, err := os.ReadFile(path)
	dir, name := strings.TrimSpace(string(content)), filepath.Base(path)
	if err == nil {
		err = errors.Join(vpcnet.RemoveLeftovers(name), realnode.RemoveLeftovers("/"+name), removeFiles(dir))
	}
	if err != nil {
		return dir, errors.Join(err, record.Close())
	}
	return dir, removeRecord(record)
}

// removeFiles removes what a killed sandbox has written, but for what another one that runs there now has. The directory itself stays
// if it is not empty.
func removeFiles(dir string) error {
	if _, err := os.Stat(dir); dir == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	f, err := openDir(dir)
	if errors.Is(err, errInUse) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range []string{kubeconfigFile, emulatorFile, cloudConfigFile} {
		f.written = append(f.written, f.path(name))
	}
	return f.remove()
}
