package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// guide is the page with the quickstarts.
const guide = "../../docs/how-to/emulator.md"

// block returns the block of the guide that names the test.
func block(t *testing.T, test string) string {
	t.Helper()
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), " test="+test+"\n")
	code, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatalf("%s has no block for %s", guide, test)
	}
	return code + "\n"
}

// served runs the program and returns its address.
func served(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), writer) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	line := make([]byte, 100)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "listening on http://"))
}

// do runs a command of the guide against an emulator, and returns what it prints.
func do(t *testing.T, dir, address, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	if _, err := exec.LookPath("curl"); program == "sh" && err != nil {
		t.Skip("curl is not installed")
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "127.0.0.1:18080", address)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, stderr.String())
	}
	return string(out)
}

func TestQuickstartPython(t *testing.T) {
	t.Parallel()
	address := served(t)
	do(t, t.TempDir(), address, "python3", "-c", block(t, "TestQuickstartPython"))
}

func TestQuickstartSeed(t *testing.T) {
	t.Parallel()
	seed := filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(seed, []byte(block(t, "TestQuickstartSeed")), 0o600); err != nil {
		t.Fatal(err)
	}
	state := read(t, http.MethodGet, served(t, "--config", seed), "/_emulator/state")
	if !strings.Contains(state, `"web-1"`) || !strings.Contains(state, "192.168.1.") {
		t.Errorf("state %s", state)
	}
}

func TestQuickstartSnapshot(t *testing.T) {
	t.Parallel()
	address, dir := served(t), t.TempDir()
	read(t, http.MethodPut, address, "/_emulator/instances/i-1")
	lines := strings.Split(strings.TrimSpace(block(t, "TestQuickstartSnapshot")), "\n")
	do(t, dir, address, "sh", "-ec", lines[0])
	read(t, http.MethodDelete, address, "/_emulator/instances/i-1")
	do(t, dir, address, "sh", "-ec", lines[1])
	if state := read(t, http.MethodGet, address, "/_emulator/state"); !strings.Contains(state, `"i-1"`) {
		t.Errorf("state %s", state)
	}
}

func TestQuickstartAccounts(t *testing.T) {
	t.Parallel()
	address := served(t)
	var made struct{ AccountID, AccessKeyID, AccessKeySecret, Region, Path string }
	text := do(t, t.TempDir(), address, "sh", "-ec", block(t, "TestQuickstartAccounts"))
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Path != "/accounts/"+made.AccountID || made.AccessKeySecret == "" {
		t.Errorf("%s, %v", text, err)
	}
	read(t, http.MethodGet, address, made.Path+"/_emulator/state")
}

// read makes a request to an emulator.
func read(t *testing.T, method, address, path string) string {
	t.Helper()
	body := ""
	if method == http.MethodPut {
		body = "{}"
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, answer, err)
	}
	return string(answer)
}
