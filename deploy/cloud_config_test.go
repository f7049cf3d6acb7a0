package deploy

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	testKeyID  = `LTAI"\&$x`
	testSecret = `s3cr3t"\&$'*`
)

// fakeKubectl notes what it is given to apply: arguments, environment and standard input. It knows no bindings.
const fakeKubectl = `#!/bin/sh
[ "$1" = apply ] || exit 1
printf '%s\n' "$@" >"$RECORD/args"
env >"$RECORD/env"
cat >"$RECORD/stdin"
exit "${KUBECTL_EXIT:-0}"
`

// script runs cloud-config.sh with a fake kubectl and returns its exit code and output, and the directory of the record.
func script(t *testing.T, env []string, args ...string) (code int, output, record string) {
	t.Helper()
	record = t.TempDir()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(fakeKubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bash", append([]string{"cloud-config.sh"}, args...)...)
	command.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "RECORD=" + record}, env...)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(out), record
}

func keys(more ...string) []string {
	return append([]string{"ACCESS_KEY_ID=" + testKeyID, "ACCESS_KEY_SECRET=" + testSecret, "REGION=cn-hangzhou"}, more...)
}

// global reads the configuration out of a manifest.
func global(t *testing.T, manifest string) map[string]string {
	t.Helper()
	var configMap struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Data     map[string]string
	}
	if err := json.Unmarshal([]byte(manifest), &configMap); err != nil {
		t.Fatalf("manifest %s: %v", manifest, err)
	}
	if meta := configMap.Metadata; configMap.Kind != "ConfigMap" || meta.Namespace != "kube-system" || meta.Name != "cloud-config" {
		t.Errorf("manifest is of %s %+v, want ConfigMap kube-system/cloud-config", configMap.Kind, meta)
	}
	var config struct{ Global map[string]string }
	if err := json.Unmarshal([]byte(configMap.Data["cloud-config.conf"]), &config); err != nil {
		t.Fatalf("cloud-config.conf %s: %v", configMap.Data["cloud-config.conf"], err)
	}
	return config.Global
}

func TestScriptAppliesTheConfig(t *testing.T) {
	t.Parallel()
	code, output, record := script(t,
		keys("VPC_ID=vpc-1", "VSWITCH_ID=cn-hangzhou-a:vsw-1", `CLUSTER_ID=a"b\c&d`, "ROUTE_TABLE_IDS=vtb-1,vtb-2"))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	want := map[string]string{
		"accessKeyID":     base64.StdEncoding.EncodeToString([]byte(testKeyID)),
		"accessKeySecret": base64.StdEncoding.EncodeToString([]byte(testSecret)),
		"region":          "cn-hangzhou",
		"vpcid":           "vpc-1",
		"vswitchid":       "cn-hangzhou-a:vsw-1",
		"clusterID":       `a"b\c&d`,
		"routeTableIDs":   "vtb-1,vtb-2",
	}
	if diff := cmp.Diff(want, global(t, read(t, record, "stdin"))); diff != "" {
		t.Errorf("cloud-config (-want +got):\n%s", diff)
	}
	wantArgs := "apply\n--server-side\n--force-conflicts\n--field-manager=cloud-config.sh\n-f\n-\n"
	if args := read(t, record, "args"); args != wantArgs {
		t.Errorf("kubectl got arguments %q, want %q", args, wantArgs)
	}
	if strings.Contains(read(t, record, "env"), testSecret) || strings.Contains(output, testSecret) {
		t.Error("the secret is in kubectl's environment or in the output")
	}
}

func TestScriptMakesASecret(t *testing.T) {
	t.Parallel()
	code, output, record := script(t, keys("REGION=cn-beijing"), "--secret", "--region", "cn-hangzhou")
	if code != 0 || strings.Contains(output, testSecret) {
		t.Fatalf("exit code %d: %s", code, output)
	}
	var secret struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Data     map[string][]byte // base64 in the manifest
	}
	if err := json.Unmarshal([]byte(read(t, record, "stdin")), &secret); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Global struct {
			Region          string
			AccessKeySecret []byte
		}
	}
	if err := json.Unmarshal(secret.Data["cloud-config.conf"], &config); err != nil {
		t.Fatalf("cloud-config.conf: %v", err)
	}
	if secret.Kind != "Secret" || secret.Metadata.Name != "cloud-config" || config.Global.Region != "cn-hangzhou" ||
		string(config.Global.AccessKeySecret) != testSecret {
		t.Errorf("the manifest is of %s %+v with region %s", secret.Kind, secret.Metadata, config.Global.Region)
	}
}

// TestScriptAsksWithoutEcho types the key on a terminal, which the program script makes.
func TestScriptAsksWithoutEcho(t *testing.T) {
	t.Parallel()
	record, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(fakeKubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "script", "--quiet", "--return", "--command", "bash cloud-config.sh --region cn-hangzhou",
		"/dev/null")
	command.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "RECORD=" + record, "TERM=dumb"}
	keyboard, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	shown := ""
	for _, question := range []string{"ACCESS_KEY_ID: ", "ACCESS_KEY_SECRET: "} {
		shown += readUntil(t, terminal, question)
		if _, err := io.WriteString(keyboard, "typed-"+question+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	rest, err := io.ReadAll(terminal)
	if err != nil || command.Wait() != nil {
		t.Fatalf("%v, %s: %s%s", err, command.ProcessState, shown, rest)
	}
	if strings.Contains(shown+string(rest), "typed-") {
		t.Errorf("the terminal shows %q: what was typed among it", shown+string(rest))
	}
	got := global(t, read(t, record, "stdin"))
	if want := base64.StdEncoding.EncodeToString([]byte("typed-ACCESS_KEY_SECRET:")); got["accessKeySecret"] != want {
		t.Errorf("the secret in the manifest is %q, want %q", got["accessKeySecret"], want)
	}
}

// readUntil reads up to the end of want.
func readUntil(t *testing.T, from io.Reader, want string) string {
	t.Helper()
	var seen []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(seen), want); seen = append(seen, one[0]) {
		if _, err := io.ReadFull(from, one); err != nil {
			t.Fatalf("%q ends without %q: %v", seen, want, err)
		}
	}
	return string(seen)
}

func TestScriptDryRunMasksTheSecret(t *testing.T) {
	t.Parallel()
	code, output, record := script(t, keys(), "--dry-run")
	if code != 0 || strings.Contains(output, base64.StdEncoding.EncodeToString([]byte(testSecret))) {
		t.Errorf("exit code %d, output %q: want 0 and no secret", code, output)
	}
	if got := global(t, output)["accessKeySecret"]; got != "***" {
		t.Errorf("secret shown as %q, want ***", got)
	}
	if _, err := os.Stat(filepath.Join(record, "args")); err == nil {
		t.Error("a dry run called kubectl")
	}
	if _, output, _ := script(t, keys(), "--dry-run", "--secret"); !strings.Contains(output, `\"***\"`) {
		t.Errorf("dry run of a Secret prints %q, want the configuration with the secret masked", output)
	}
}

func TestScriptErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env  []string
		args []string
		want string
	}{
		{env: []string{"ACCESS_KEY_SECRET=x", "REGION=cn-hangzhou"}, want: "ACCESS_KEY_ID"},
		{env: []string{"ACCESS_KEY_ID=x", "REGION=cn-hangzhou"}, want: "ACCESS_KEY_SECRET"},
		{env: []string{"ACCESS_KEY_ID=x", "ACCESS_KEY_SECRET=x"}, want: "REGION"},
		{env: []string{"ACCESS_KEY_ID=x", "ACCESS_KEY_SECRET=x", "REGION=Hangzhou"}, want: `"Hangzhou"`},
		{env: []string{"ACCESS_KEY_ID=x\n", "ACCESS_KEY_SECRET=x", "REGION=cn-hangzhou"}, want: "ACCESS_KEY_ID"},
		{env: keys("VPC_ID=vpc 1"), want: "VPC_ID"},
		{env: keys("KUBECTL_EXIT=1"), want: "kube-system/cloud-config"},
		{env: keys(), args: []string{"--dryrun"}, want: `"--dryrun"`},
		{env: keys(), args: []string{"--dry-run", "now"}, want: `"now"`},
		{env: keys(), args: []string{"--region"}, want: "--region has no value"},
		{env: keys(), args: []string{"--region=Hangzhou"}, want: `"Hangzhou"`},
		{env: keys("KUBECTL_EXIT=1"), args: []string{"--secret"}, want: "Secret kube-system/cloud-config"},
	} {
		code, output, _ := script(t, test.env, test.args...)
		if code != 1 || strings.Count(output, "\n") != 1 || !strings.Contains(output, test.want) || strings.Contains(output, testSecret) {
			t.Errorf("%q %q: exit code %d with %q, want 1 with one line that holds %q and no secret", test.env, test.args, code, output, test.want)
		}
	}
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
