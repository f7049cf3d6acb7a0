package chart

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// tutorials are pages that a reader follows one after the other on one sandbox, which the first page of a course starts.
var tutorials = map[string][]string{
	"routes": {"quickstart", "load-balancer", "https", "ingress", "share", "intranet", "hybrid", "operate"},
	"pods":   {"pods", "virtual-nodes"},
	"chart":  {"chart"},
}

// fenced is a block of a page: the words behind the language, and its lines.
var fenced = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([^\n]*))?\n(.*?)^```$")

// TestTutorials runs the tutorials as readers do: all commands of a course in one terminal, and programs that do not end in others. A block
// of text behind commands is what they print, but for addresses, IDs, ages and versions. At its end, a page leaves no load balancer behind.
func TestTutorials(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(root + "/docs/tutorials/*.md")
	if err != nil {
		t.Fatal(err)
	}
	followed := 1 // README.md
	for course, names := range tutorials {
		followed += len(names)
		t.Run(course, func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			for _, name := range names {
				if name == "operate" {
					r.appliesExamples()
				}
				r.follow(name)
				r.leavesNothing(name)
			}
		})
	}
	if followed != len(pages) {
		t.Errorf("%d pages in docs/tutorials, and %d are followed", len(pages), followed)
	}
}

// reader is somebody with a checkout, and a terminal in it.
type reader struct {
	*testing.T
	checkout string
	env      []string
	port     int
	commands io.Writer
	lines    chan string
	// background are programs in other terminals.
	background []*process
}

func newReader(t *testing.T) *reader {
	t.Helper()
	tmp := t.TempDir()
	r := &reader{T: t, checkout: filepath.Join(tmp, "c"), lines: make(chan string), port: freePort(t)}
	bin := filepath.Join(r.checkout, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // as a checkout is
		t.Fatal(err)
	}
	for _, name := range []string{"charts", "deploy", "docs"} {
		target, err := filepath.Abs(filepath.Join(root, name))
		if err == nil {
			err = os.Symlink(target, filepath.Join(r.checkout, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, path := range map[string]string{
		"sandbox": program(t, "sandbox"), "kubectl": program(t, "kubectl"), "provider-initor": program(t, "provider-initor"),
		"helm": tool(t, helm4),
	} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	// The port is for tests that run at the same time. Subcommands have none, and pods their own.
	manager := fmt.Sprintf("#!/bin/sh\ncase $* in *--secure-port=*) ;; -*) set -- \"$@\" --bind-address=127.0.0.1 --secure-port=%d ;; esac\nexec %s \"$@\"\n",
		r.port, program(t, "cloud-controller-manager"))
	if err := os.WriteFile(filepath.Join(bin, "cloud-controller-manager"), []byte(manager), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	r.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp, "KUBECONFIG="}
	r.open()
	return r
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is TCP
}

// open starts the terminal. It ends with the first command that fails.
func (r *reader) open() {
	r.Helper()
	// Not from its standard input: what runs in it could read that.
	script, commands, err := os.Pipe()
	if err != nil {
		r.Fatal(err)
	}
	command := exec.Command("bash", "-euo", "pipefail", "/dev/fd/3")
	command.Dir, command.Env, command.ExtraFiles = r.checkout, append(os.Environ(), r.env...), []*os.File{script}
	output, write := io.Pipe()
	command.Stdout, command.Stderr = write, write
	if err := command.Start(); err != nil {
		r.Fatal(err)
	}
	r.commands = commands
	go func() {
		defer close(r.lines)
		scanner := bufio.NewScanner(output)
		for scanner.Scan() {
			r.lines <- scanner.Text()
		}
	}()
	go func() {
		_ = command.Wait() // what it printed last tells
		_ = script.Close()
		_ = write.Close()
	}()
	r.Cleanup(func() {
		_ = commands.Close() // that ends it
		for range r.lines {
		}
	})
}

// done ends the output of a block.
const done = "--- the block has ended ---"

// run runs a block in the terminal, and returns what it prints.
func (r *reader) run(block string) string {
	r.Helper()
	block = strings.ReplaceAll(block, ":10258", fmt.Sprintf(":%d", r.port))
	if _, err := fmt.Fprintf(r.commands, "%s\necho '%s'\n", block, done); err != nil {
		r.Fatalf("%s\n%v", block, err)
	}
	var output strings.Builder
	late := time.After(2 * deadline)
	for {
		select {
		case line, more := <-r.lines:
			switch {
			case !more:
				r.Fatalf("%s\nfails: %s", block, output.String())
			case line == done:
				return output.String()
			}
			output.WriteString(line + "\n")
		case <-late:
			r.Fatalf("%s\ndoes not end: %s", block, output.String())
		}
	}
}

// follow does what a page says.
func (r *reader) follow(name string) {
	r.Helper()
	path := "docs/tutorials/" + name + ".md"
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		r.Fatal(err)
	}
	r.checkExcerpts(path, string(text))
	var printed func() string
	patient := false
	for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
		language, how, body := block[1], block[2], block[3]
		switch {
		case language == "sh" && how == "run":
			output := r.run(body)
			printed, patient = func() string { return output }, false
		case language == "sh" && how == "run=background":
			p := start(r.T, r.env, "bash", "-c", "cd "+r.checkout+"\nexec "+strings.TrimSpace(body))
			r.background = append(r.background, p)
			printed, patient = p.output.String, true
		case language == "sh" && how == "run=interrupt":
			if name == "operate" {
				r.seesTheAlert()
			}
			for _, p := range slices.Backward(r.background) {
				p.stop(r.T)
			}
			r.background = nil
		case language == "text":
			r.expect(path, body, printed, patient)
		}
	}
}

// expect looks for the lines of a page among those that were printed, in their order. Programs in other terminals have some time for them.
func (r *reader) expect(path, want string, printed func() string, patient bool) {
	r.Helper()
	if patient {
		(&sandbox{T: r.T}).until(path, func(context.Context) string { return firstMissing(want, printed()) })
		return
	}
	if missing := firstMissing(want, printed()); missing != "" {
		r.Fatalf("%s: there is no line %q in\n%s", path, missing, printed())
	}
}

// leavesNothing: after a page, the cloud has no load balancer.
func (r *reader) leavesNothing(name string) {
	r.Helper()
	if len(r.background) == 0 {
		return // the sandbox has ended
	}
	s := &sandbox{T: r.T, url: strings.TrimSpace(r.run(`echo "$cloud"`))}
	s.until(name+" removes what it made", func(context.Context) string {
		var state struct {
			LoadBalancers, NetworkLoadBalancers []struct{ LoadBalancerId string }
		} //nolint:revive,staticcheck // the API's spelling
		s.state(&state)
		if len(state.LoadBalancers)+len(state.NetworkLoadBalancers) > 0 {
			return fmt.Sprintf("%+v", state)
		}
		return ""
	})
}

// variable are parts of lines that are different each time.
var variable = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`), "IP"},
	{regexp.MustCompile(`\bv\d+\.\d+\.\d+\S*`), "VERSION"},
	{regexp.MustCompile(`\b(lb|nlb|rsp|sgp|eni|eci|acl|sg)-[a-z0-9-]+\b`), "$1-ID"},
	{regexp.MustCompile(`\b(web|burst|ingress-nginx-controller|cloud-controller-manager)-[a-z0-9]{8,10}-[a-z0-9]{5}\b`), "$1-POD"},
	{regexp.MustCompile(`:3\d{4}/`), ":PORT/"},
	{regexp.MustCompile(`\b\d+(ms|s|m|m\d+s|h)\b`), "AGE"},
	{regexp.MustCompile(`[0-9A-F]{8}-[0-9A-F-]{27}`), "REQUEST"},
	{regexp.MustCompile(`\s+`), " "},
}

// constant returns a line without what varies.
func constant(line string) string {
	line = strings.TrimSpace(line)
	for _, v := range variable {
		line = v.pattern.ReplaceAllString(line, v.as)
	}
	return line
}

// firstMissing returns the first line that is not printed behind those before it, "" for none. A line "…" stands for any lines, and at the
// end of a line it stands for the rest.
func firstMissing(want, got string) string {
	lines := strings.Split(got, "\n")
	for _, line := range strings.Split(strings.TrimSpace(want), "\n") {
		if line == "…" {
			continue
		}
		start, open := strings.CutSuffix(constant(line), "…")
		found := -1
		for i, printed := range lines {
			if printed = constant(printed); printed == start || open && strings.HasPrefix(printed, start) {
				found = i
				break
			}
		}
		if found < 0 {
			return line
		}
		lines = lines[found+1:]
	}
	return ""
}

// checkExcerpts checks that each block of YAML in a page is a part of an example.
func (r *reader) checkExcerpts(page, text string) {
	r.Helper()
	files, err := filepath.Glob(root + "/docs/examples/*.yaml")
	if err != nil {
		r.Fatal(err)
	}
	all := ""
	for _, file := range files {
		example, err := os.ReadFile(file)
		if err != nil {
			r.Fatal(err)
		}
		all += string(example)
	}
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		if block[1] == "yaml" && !strings.Contains(all, block[3]) {
			r.Errorf("%s: this is in no file of docs/examples:\n%s", page, block[3])
		}
	}
}

// seesTheAlert: with the metrics that the page saved, while a Service was broken, its alert fires after its time.
func (r *reader) seesTheAlert() {
	r.Helper()
	got := run(r.Context(), r.T, []string{"CGO_ENABLED=0"}, "go", "-C", root+"/hack/monitoring", "test", "-count=1", "-run",
		"^TestMetricsOfAProgram$", ".",
		"-metrics", filepath.Join(r.checkout, "cluster/metrics.txt"), "-alerts", "CloudControllerManagerServicesNeedTheirOwners")
	if got.code != 0 {
		r.Errorf("alerts on the metrics of the manager: %s%s", got.stdout, got.stderr)
	}
}
