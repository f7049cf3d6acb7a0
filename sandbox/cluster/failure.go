package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// machinesDir is where the disks of real machines are, below the state directory.
const machinesDir = "machines"

// errorLine matches lines about errors: those of klog, and those of containerd.
var errorLine = regexp.MustCompile(`^[EF]\d{4} |level=(error|fatal|panic)`)

// KeepLogs keeps the logs of a sandbox that has failed, which Stop removes. It returns the last error of each real machine, and where the
// logs are: "0 of 3 nodes are ready" helps nobody. The text is empty if nothing was logged.
func (c *Cluster) KeepLogs() string {
	if c.files == nil {
		return ""
	}
	return c.files.keepLogs()
}

func (f *files) keepLogs() string {
	logs, _ := filepath.Glob(filepath.Join(f.statePath(machinesDir), "*", "var", "log", "*.log")) //nolint:errcheck // the pattern is valid
	var texts []string
	kept := ""
	for _, path := range append(logs, f.log.Name()) {
		content, err := os.ReadFile(path)
		if err != nil || len(content) == 0 {
			continue
		}
		if kept == "" {
			if kept, err = os.MkdirTemp("", "sandbox-logs-"); err != nil {
				return err.Error()
			}
			texts = append(texts, "the logs are in "+kept)
		}
		name := strings.ReplaceAll(f.inState(path), string(filepath.Separator), "-")
		if err = os.WriteFile(filepath.Join(kept, name), content, 0o600); err != nil {
			return err.Error()
		}
		if last := lastError(string(content)); last != "" && path != f.log.Name() {
			machine := strings.Split(f.inState(path), string(filepath.Separator))[1]
			texts = append(texts, fmt.Sprintf("machine %s, %s: %s", machine, filepath.Base(path), last))
		}
	}
	return strings.Join(texts, "\n")
}

func (f *files) inState(path string) string {
	return strings.TrimPrefix(path, f.state+string(filepath.Separator))
}

// lastError returns the last line of a log that is about an error, empty for none.
func lastError(log string) string {
	last := ""
	for line := range strings.Lines(log) {
		if errorLine.MatchString(line) {
			last = strings.TrimSpace(line)
		}
	}
	return last
}
