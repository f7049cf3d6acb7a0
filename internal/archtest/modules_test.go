package archtest

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestModulesShareBuilds: what the programs, the sandbox and Helm are built from has one version. With two, Go compiles all of Kubernetes'
// client library twice, which is minutes of a first "make test".
func TestModulesShareBuilds(t *testing.T) {
	t.Parallel()
	// Of these, nothing that several modules compile imports anything.
	apart := []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/trace", "google.golang.org/genproto/googleapis/api",
		"google.golang.org/genproto/googleapis/rpc", "k8s.io/apiextensions-apiserver", "github.com/godbus/dbus/v5",
		"github.com/alicloud-ccm/cloud-provider-alicloud"}
	root := required(t, "../../go.mod")
	for _, file := range []string{"../../sandbox/go.mod", "../../hack/chart/go.mod"} {
		for module, version := range required(t, file) {
			if have, ok := root[module]; ok && have != version && !slices.Contains(apart, module) {
				t.Errorf("%s has %s %s, go.mod has %s: raise the lower one with \"go get\"", file, module, version, have)
			}
		}
		maps.Copy(root, required(t, file))
	}
}

// required are the versions of the modules that a go.mod requires.
func required(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) (v\S+)`).FindAllStringSubmatch(string(text), -1) {
		versions[m[1]] = m[2]
	}
	return versions
}
