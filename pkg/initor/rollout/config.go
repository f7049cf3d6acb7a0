package rollout

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

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
	DefaultTimeout   = 10 * time.Minute
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
