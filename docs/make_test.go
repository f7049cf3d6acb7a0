package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeNamesMissingPrograms runs targets without the programs that they need: each fails with one line that says how to get it.
func TestMakeNamesMissingPrograms(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, name := range []string{"bash", "make"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for target, program := range map[string]string{"shellcheck": "shellcheck", "lint": "shellcheck", "test-browser": "chromium",
		"soak": "cc"} {
		command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", root, target)
		command.Env = []string{"PATH=" + bin, "HOME=" + t.TempDir()}
		output, err := command.CombinedOutput()
		if want := "make " + target + ": the program " + program + " is missing: install it"; err == nil ||
			!strings.Contains(strings.ReplaceAll(string(output), "make shellcheck:", "make "+target+":"), want) {
			t.Errorf("make %s without %s: %v, %s, want %q", target, program, err, output, want)
		}
	}
}
