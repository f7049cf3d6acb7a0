package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte("region: cn-hangzhou\nvpcs: [{id: v, cidr: 10.0.0.0/8, nmae: x}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"unknown flag", []string{"--fabrics"}, "--fabrics"},
		{"argument", []string{"now"}, `"now"`},
		{"negative time", []string{"--settle=-1s"}, "--settle"},
		{"missing config", []string{"--config", filepath.Join(dir, "none")}, "none"},
		{"unknown field", []string{"--config", broken}, "nmae"},
		{"no region", []string{"--config", empty}, "region"},
		{"rate limits", []string{"--rate-limits", "some"}, `"some"`},
		{"address", []string{"--listen", "nowhere"}, "--listen nowhere"},
		{"clients of the admin API", []string{"--admin-clients", "192.0.2.0/24"}, "192.0.2.0/24"},
		{"half a TLS pair", []string{"--tls-cert", "x"}, "--tls-key"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), test.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one that names %s", err, test.want)
			}
		})
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	journal, snapshot := filepath.Join(dir, "calls"), filepath.Join(dir, "state")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--listen", "127.0.0.1:0", "--journal", journal, "--snapshot", snapshot}, writer)
	}()
	line := make([]byte, 100)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "listening on "))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/healthz", "/?Action=DescribeVpcs&Version=2016-04-28"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(journal)
	if err != nil || bytes.Count(calls, []byte("\n")) != 1 {
		t.Errorf("journal = %q, %v; want one call", calls, err)
	}
	if _, err := os.Stat(snapshot); err != nil {
		t.Error(err)
	}
}

// TestEnvironment: an image sets defaults by variables, so that arguments for a container replace none of them.
//
//nolint:paralleltest // the environment is that of the process
func TestEnvironment(t *testing.T) {
	if f, err := parse(nil); err != nil || f.listen != "127.0.0.1:18080" || f.options.OpenAdmin {
		t.Errorf("without variables: %+v, %v", f, err)
	}
	t.Setenv(envListen, ":18080")
	t.Setenv(envAdminClients, adminAny)
	if f, err := parse([]string{"--fabric"}); err != nil || f.listen != ":18080" || !f.options.OpenAdmin {
		t.Errorf("with variables: %+v, %v", f, err)
	}
	if f, err := parse([]string{"--listen", "127.0.0.1:0", "--admin-clients", adminLoopback}); err != nil || f.listen != "127.0.0.1:0" ||
		f.options.OpenAdmin {
		t.Errorf("flags must win over variables: %+v, %v", f, err)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--version"}, &out); err != nil ||
		!regexp.MustCompile(`^alicloud-emulator v\S+ \(commit \S+, go\S+, \w+/\w+\)\n$`).MatchString(out.String()) {
		t.Errorf("%v, %q", err, out.String())
	}
}
