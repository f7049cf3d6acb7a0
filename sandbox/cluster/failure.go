package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
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
	kept := ""
	for _, path := range append(machineLogs(f.state), f.log.Name()) {
		content, err := os.ReadFile(path)
		if err != nil || len(content) == 0 {
			continue
		}
		if kept == "" {
			if kept, err = os.MkdirTemp("", "sandbox-logs-"); err != nil {
				return err.Error()
			}
		}
		name := strings.ReplaceAll(f.inState(path), string(filepath.Separator), "-")
		if err = os.WriteFile(filepath.Join(kept, name), content, 0o600); err != nil {
			return err.Error()
		}
	}
	if kept == "" {
		return ""
	}
	return strings.TrimSuffix("the logs are in "+kept+"\n"+LastErrors(f.dir), "\n")
}

// LastErrors says what went wrong on the real machines of the sandbox in a directory, a line for each: why machines did not boot or end,
// then the last error in each log of theirs. A machine that does not boot is no Node, and nothing in the cluster says why.
func LastErrors(dir string) string {
	state := filepath.Join(dir, stateDir)
	var texts []string
	if content, err := os.ReadFile(filepath.Join(state, controlPlaneLog)); err == nil {
		for line := range strings.Lines(string(content)) {
			if strings.HasPrefix(line, realnode.Complaint) {
				texts = append(texts, strings.TrimSpace(line))
			}
		}
	}
	for _, path := range machineLogs(state) {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // the machine has just lost its disk
		}
		if last := lastError(string(content)); last != "" {
			machine := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(path)))) // its disk has var/log
			texts = append(texts, fmt.Sprintf("machine %s, %s: %s", machine, filepath.Base(path), last))
		}
	}
	return strings.Join(texts, "\n")
}

func machineLogs(state string) []string {
	logs, _ := filepath.Glob(filepath.Join(state, machinesDir, "*", "var", "log", "*.log")) //nolint:errcheck // the pattern is valid
	return logs
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
