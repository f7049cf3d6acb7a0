package docs

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// script runs one of the scripts in hack/ and returns its exit code and output.
func script(ctx context.Context, t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	command := exec.CommandContext(ctx, "bash", args...)
	command.Dir = root
	command.Env = append(os.Environ(), env...)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(output)
}

// TestReleaseRefuses: a release of something else than the tree describes ends before anything is built.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"": "VERSION is", "0.1.0": `VERSION is "0.1.0"`, "v0.0.0-3ddfc12-dirty": "VERSION is", "v9.9.9": "another appVersion than 9.9.9",
	} {
		if code, output := script(t.Context(), t, nil, "hack/release.sh", version); code != 1 || !strings.Contains(output, want) {
			t.Errorf("%q: exit code %d, %s, want 1 and %q", version, code, output, want)
		}
	}
}

// TestScansSayThatNothingIsKnown: without a database or a scanner, "no vulnerability" would be a lie.
func TestScansSayThatNothingIsKnown(t *testing.T) {
	t.Parallel()
	nowhere := []string{"GOVULNDB=http://127.0.0.1:1", "GOVULNCHECK=false"}
	if code, output := script(t.Context(), t, nowhere, "hack/vuln.sh"); code != 3 ||
		!strings.Contains(output, "http://127.0.0.1:1 cannot be reached: nothing was checked") {
		t.Errorf("vuln without a database: exit code %d, %s", code, output)
	}
	db := t.TempDir()
	if err := os.MkdirAll(filepath.Join(db, "index"), 0o755); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(db, "index/db.json"), []byte(`{"modified":"2026-01-01T00:00:00Z"}`), 0o644); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	if code, output := script(t.Context(), t, []string{"GOVULNDB=file://" + db, "GOVULNCHECK=echo checked"}, "hack/vuln.sh"); code != 0 ||
		strings.Count(output, "checked") < 4 {
		t.Errorf("vuln with a database: exit code %d, %s", code, output)
	}
	if code, output := script(t.Context(), t, []string{"GOVULNDB=file://" + db, "GOVULNCHECK=false"}, "hack/vuln.sh"); code != 1 {
		t.Errorf("vuln with findings: exit code %d, %s", code, output)
	}
	bin := t.TempDir() // without a scanner
	for _, name := range []string{"bash", "dirname"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if code, output := script(t.Context(), t, []string{"PATH=" + bin}, "hack/image-scan.sh"); code != 3 ||
		!strings.Contains(output, "nothing was checked") {
		t.Errorf("image-scan without a scanner: exit code %d, %s", code, output)
	}
}

// fakeGo makes the files that go run and go build would, in no time.
const fakeGo = `#!/bin/sh
for argument; do
  case $previous in
    --out) echo image >"$argument/cloud-controller-manager.tar"; echo image >"$argument/provider-initor.tar"; echo image >"$argument/alicloud-emulator.tar" ;;
    -o) echo "$GOOS/$GOARCH" >"$argument" ;;
  esac
  previous=$argument
done
[ "$1" = env ] && echo go1.26
exit 0
`

// fakeHelm packages a chart.
const fakeHelm = "#!/bin/sh\necho chart >dist/cloud-controller-manager-$NUMBER.tgz\n"

// subject is a file in a provenance statement.
type subject struct {
	Name   string
	Digest struct{ SHA256 string }
}

// TestRelease makes a release of this commit, with a compiler and a Helm that only write files: what is in dist/ is complete, and the
// checksums and the provenance are those of its files.
func TestRelease(t *testing.T) {
	t.Parallel()
	testkit.Long(t)
	checkout, bin := filepath.Join(t.TempDir(), "checkout"), t.TempDir()
	chart, err := os.ReadFile(root + "/charts/cloud-controller-manager/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	version := appVersion.FindStringSubmatch(string(chart))[1]
	for name, text := range map[string]string{"go": fakeGo, "helm": fakeHelm} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HELM=" + bin + "/helm", "CHECKOUT=" + checkout, "NUMBER=" + version}
	code, output := script(t.Context(), t, env, "-euc", `git clone --quiet . "$CHECKOUT" && cd "$CHECKOUT"
		sed -i "s/^## \[Unreleased\]/## [$NUMBER] - 2026-01-01/" CHANGELOG.md
		git -c user.name=a -c user.email=a@example.com commit --quiet --allow-empty --all --message release
		hack/release.sh "v$NUMBER" && cd dist && sha256sum --quiet --check SHA256SUMS && git rev-parse HEAD >../commit`)
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, output)
	}
	var statement struct {
		Subject   []subject
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest struct{ GitCommit string } }
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(checkout, "dist/provenance.intoto.json"))
	if err == nil {
		err = json.Unmarshal(text, &statement)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	sums, err := os.ReadFile(filepath.Join(checkout, "dist/SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cloud-controller-manager.tar", "provider-initor.tar", "alicloud-emulator.tar",
		"cloud-controller-manager-" + version + ".tgz", "provider-initor-darwin-arm64", "alicloud-emulator-linux-amd64", "ccm.yaml",
		"cloud-config.sh", "NOTES.md"} {
		i := slices.IndexFunc(statement.Subject, func(s subject) bool { return s.Name == name })
		if i < 0 || !strings.Contains(string(sums), statement.Subject[i].Digest.SHA256+"  "+name+"\n") {
			t.Errorf("%s is not in the provenance, or with another checksum:\n%s", name, sums)
		}
	}
	commit, err := os.ReadFile(filepath.Join(checkout, "commit"))
	if dependencies := statement.Predicate.BuildDefinition.ResolvedDependencies; err != nil || len(dependencies) != 1 ||
		dependencies[0].Digest.GitCommit != strings.TrimSpace(string(commit)) {
		t.Errorf("the provenance names %+v, want the commit %s", dependencies, commit)
	}
}
