package rollout

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// updateGolden, if set in the environment, writes the golden files anew.
const updateGolden = "UPDATE_GOLDEN"

func TestManifest(t *testing.T) {
	t.Parallel()
	base := Config{Name: DefaultName, Namespace: DefaultNamespace, Image: "registry.example.com/provider-initor:1.2.3",
		Timeout: DefaultTimeout}
	for file, edit := range map[string]func(*Config){
		"broadcastjob.yaml":      func(c *Config) { c.Driver = DriverBroadcastJob },
		"broadcastjob-keep.yaml": func(c *Config) { c.Driver, c.Keep = DriverBroadcastJob, true },
		"job.yaml":               func(c *Config) { c.Driver, c.Nodes = DriverJob, []string{"node-1"} },
	} {
		config := base
		edit(&config)
		var got bytes.Buffer
		objects, err := Objects(config)
		if err = errors.Join(err, WriteManifest(&got, objects)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", file)
		if os.Getenv(updateGolden) != "" {
			if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got); %s=1 writes it anew:\n%s", path, updateGolden, diff)
		}
	}
}

func TestJobNamesFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("very-long.", 25) + "ab"
	config := Config{Name: strings.Repeat("n", maxNameLength), Namespace: "a", Image: "i", Driver: DriverJob, Timeout: time.Second}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, nodeName := range []string{"a", "b", long, long + "c"} {
		config.Nodes = []string{nodeName}
		objects, err := Objects(config)
		if err != nil {
			t.Fatal(err)
		}
		name := objects[len(objects)-1].GetName()
		if len(name) > 63 || names[name] {
			t.Errorf("the Job of node %s is called %s, which is too long or taken", nodeName, name)
		}
		names[name] = true
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := Config{Name: "a", Namespace: "b", Image: "c", Driver: DriverBroadcastJob, Keep: true, Timeout: time.Second}
	for name, test := range map[string]struct {
		edit func(*Config)
		want []string // parts of the error; none: no error
	}{
		"good":       {edit: func(*Config) {}},
		"empty":      {edit: func(c *Config) { *c = Config{} }, want: []string{"name is", "namespace is", "image is", "timeout is", "driver is"}},
		"long name":  {edit: func(c *Config) { c.Name = strings.Repeat("a", 53) }, want: []string{"name is", "52"}},
		"bad name":   {edit: func(c *Config) { c.Name = "A.b" }, want: []string{`"A.b"`}},
		"keep a Job": {edit: func(c *Config) { c.Driver = DriverJob }, want: []string{"keep", "broadcastjob"}},
		"driver":     {edit: func(c *Config) { c.Driver = "daemonset" }, want: []string{`"daemonset"`, "broadcastjob", "job"}},
	} {
		config := good
		test.edit(&config)
		err := config.Validate()
		if (err == nil) != (len(test.want) == 0) {
			t.Errorf("%s: error is %v", name, err)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not hold %q", name, err, part)
			}
		}
	}
}
