package rollout

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the template of the objects
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	bounds "github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

// The labels by which the objects of a rollout are found and distinguished from those of others.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	programName    = "provider-initor"
)

const (
	// restartLimit is how often a container starts again before its node counts as failed. Each start retries for a minute
	// by itself, so a fault that outlives four is not a passing one.
	restartLimit = 3
	// orphanGrace is what pods may take beyond the rollout's timeout if nobody removes them, so that they are not taken away
	// while the rollout still reads them.
	orphanGrace = bounds.InitorRun
	// suffixLength is enough for the suffixes of 10,000 node names to differ, but for a chance of one in 20,000.
	suffixLength = 10
)

//go:embed objects.yaml
var objectsText string

var objectsTemplate = template.Must(template.New("objects").Parse(objectsText))

// manifest is what the template of the objects knows.
type manifest struct {
	Config
	Node string // of a Job
}

// For is the same for one node.
func (m manifest) For(node string) manifest { return manifest{m.Config, node} }

// JobName returns the name of the node's Job.
func (m manifest) JobName() string { return jobName(m.Config, m.Node) }

// DeadlineSeconds is when pods end that nobody has removed.
func (m manifest) DeadlineSeconds() int64 { return int64((m.Timeout + orphanGrace) / time.Second) }

// RestartLimit is [restartLimit].
func (m manifest) RestartLimit() int { return restartLimit }

// Broadcast reports whether OpenKruise makes the pods.
func (m manifest) Broadcast() bool { return m.Driver == DriverBroadcastJob }

// Keeps is an expression that is true if no field of a part of the Node changes but the given ones.
func (m manifest) Keeps(part string, but ...string) string {
	return fmt.Sprintf("object.%[1]s.all(f, f in %[2]s || f in oldObject.%[1]s && object.%[1]s[f] == oldObject.%[1]s[f]) && "+
		"oldObject.%[1]s.all(f, f in %[2]s || f in object.%[1]s)", part, "['"+strings.Join(but, "', '")+"']")
}

// Objects returns everything that c describes, in the order in which it has to be made.
func Objects(c Config) ([]*unstructured.Unstructured, error) {
	var text bytes.Buffer
	if err := objectsTemplate.Execute(&text, manifest{Config: c}); err != nil {
		return nil, fmt.Errorf("make the objects of %s: %w", c.Name, err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text.String(), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("make the objects of %s: %w", c.Name, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// identityObjects are the pods' ServiceAccount and its role: to get and patch nodes, and nothing more. The policy that restricts the role
// comes before it.
func identityObjects(c Config) ([]*unstructured.Unstructured, error) {
	c.Driver, c.Nodes = DriverJob, nil
	return Objects(c)
}

// jobName is short whatever the length of the node's name, and always the same.
func jobName(c Config, nodeName string) string {
	sum := sha256.Sum256([]byte(nodeName))
	return c.Name + "-" + hex.EncodeToString(sum[:])[:suffixLength]
}

// WriteManifest writes objects as YAML documents, which `kubectl apply` takes.
func WriteManifest(w io.Writer, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
	}
	return nil
}

// Driver is what puts one pod on each node.
type Driver string

// The drivers.
const (
	// DriverBroadcastJob makes one BroadcastJob, which reaches nodes that join later too. It needs OpenKruise.
	DriverBroadcastJob Driver = "broadcastjob"
	// DriverJob makes one Job for each node that is there. It needs nothing.
	DriverJob Driver = "job"
)

// Defaults of a [Config].
const (
	DefaultName      = "provider-initor-run"
	DefaultNamespace = "kube-system"
	DefaultTimeout   = bounds.Rollout
)

// maxNameLength leaves room in the name of a Job, which may have 63 characters, for what distinguishes the Jobs.
const maxNameLength = validation.DNS1123LabelMaxLength - 1 - suffixLength

// Config says what a rollout makes.
type Config struct {
	// Name is that of every object; those of Jobs have a suffix. A DNS label of at most 52 characters.
	Name string
	// Namespace takes the ServiceAccount and the pods. It must exist and admit pods with hostNetwork.
	Namespace string
	// Image is the initializer's, with its tag.
	Image string
	// Driver puts the pods on the nodes.
	Driver Driver
	// Keep makes a BroadcastJob that does not complete, for nodes that join later. Not with [DriverJob].
	Keep bool
	// Timeout bounds the pods' work, so that they end also if nobody is there to remove them. More than zero.
	Timeout time.Duration
	// PrefixedProviderIDs has the pods write provider IDs with the scheme "alicloud://".
	PrefixedProviderIDs bool
	// AdmissionPolicy adds a policy that lets the pods only set an empty provider ID, and only on their own nodes. It requires Kubernetes
	// 1.30; Run leaves it out if the API server does not know such policies.
	AdmissionPolicy bool
	// Nodes are the names of the nodes that [DriverJob] makes Jobs for; the other driver finds its nodes itself.
	Nodes []string
}

// Validate returns what is wrong with c, everything at once, or nil.
func (c Config) Validate() error {
	var errs []error
	if problems := validation.IsDNS1123Label(c.Name); len(problems) > 0 || len(c.Name) > maxNameLength {
		errs = append(errs, fmt.Errorf("name is %q: a DNS label of at most %d characters is accepted", c.Name, maxNameLength))
	}
	if problems := validation.IsDNS1123Label(c.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("namespace is %q: %s", c.Namespace, strings.Join(problems, "; ")))
	}
	if c.Image == "" {
		errs = append(errs, errors.New("image is empty"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout is %s: a positive duration is accepted", c.Timeout))
	}
	switch {
	case c.Driver != DriverBroadcastJob && c.Driver != DriverJob:
		errs = append(errs, fmt.Errorf("driver is %q: %s and %s are accepted", c.Driver, DriverBroadcastJob, DriverJob))
	case c.Driver == DriverJob && c.Keep:
		errs = append(errs, fmt.Errorf("keep needs the driver %s: a Job reaches no node that joins later", DriverBroadcastJob))
	}
	return initor.OneLine(errs...)
}
