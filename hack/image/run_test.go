//go:build build && linux

package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestEmulatorRunsAlone runs the emulator as a container engine would: it sees the files of its image and nothing else, has its
// environment, and is its user. Only the network is that of the host.
func TestEmulatorRunsAlone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root directory and the user of a process")
	}
	p := programs[slices.IndexFunc(programs, func(p program) bool { return p.name == "alicloud-emulator" })]
	binary, err := compile(t.Context(), options{root: "../..", version: testVersion}, p, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	contents, err := files(p, testVersion, binary)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "image")
	if err := writeTree(dir, contents); err != nil {
		t.Fatal(err)
	}
	for above := filepath.Dir(dir); above != os.TempDir() && above != "/"; above = filepath.Dir(above) {
		if err := os.Chmod(above, dirMode); err != nil {
			t.Fatal(err)
		}
	}

	cmd := exec.CommandContext(t.Context(), "/"+p.path, "--listen=:0")
	cmd.Path, cmd.Dir, cmd.Env, cmd.Stderr = "/"+p.path, "/", p.env, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	port := line[strings.LastIndex(line, ":")+1:]
	if err != nil {
		t.Fatal(line, err)
	}
	response, err := http.Get("http://127.0.0.1:" + strings.TrimSpace(port) + "/healthz") //nolint:noctx // the test ends the server
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil || string(body) != "ok\n" {
		t.Errorf("healthz: %q, %v", body, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at its end: %v", err)
	}
}
