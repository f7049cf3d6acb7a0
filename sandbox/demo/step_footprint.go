package demo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Limits that the project has set itself for the cloud controller manager at the end of the demo. It usually has 79 MiB; when
// garbage is collected, and so a few more, depends on the load of the machine.
const (
	maxResidentMiB = 90
	maxBinaryMiB   = 90
)

// managerIsSmall reports the cloud controller manager's memory and the size of its program.
func managerIsSmall(ctx context.Context, s *story) (string, error) {
	info, err := os.Stat(filepath.Join(s.BinDir, managerProgram))
	if err != nil {
		return "", fmt.Errorf("read the size of the program: %w", err)
	}
	binary := float64(info.Size()) / (1 << 20)
	pid, err := s.manager.pid(ctx)
	if err != nil {
		return "", err
	}
	resident, measured, err := residentMiB(pid)
	if err != nil {
		return "", err
	}
	seen := fmt.Sprintf("binary %.0f MiB", binary)
	if measured {
		seen = fmt.Sprintf("resident memory %.0f MiB, %s", resident, seen)
	}
	if resident >= maxResidentMiB || binary >= maxBinaryMiB {
		return "", fmt.Errorf("%s: the limits are %d MiB of memory and %d MiB of binary", seen, maxResidentMiB, maxBinaryMiB)
	}
	return seen, nil
}

// residentMiB is the resident memory of a process; measured is false on systems without /proc.
func residentMiB(pid int) (mib float64, measured bool, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if os.IsNotExist(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read the program's memory: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "VmRSS" {
			continue
		}
		kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
		if err != nil {
			return 0, false, fmt.Errorf("read the program's memory from %q: %w", value, err)
		}
		return kib / 1024, true, nil
	}
	return 0, false, nil
}
