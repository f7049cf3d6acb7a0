package initor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

const (
	// DefaultTimeout bounds one run. It outlasts a restart of the API server and of the metadata service; after it the
	// pod's own restart policy takes over, with its longer pauses.
	DefaultTimeout = waits.InitorRun
	// absentRounds is how often in a row every source must say [ErrNotECS] before it is believed: the link to the metadata
	// service can be the last thing that works on a machine that has just started.
	absentRounds = 3
	// FieldManager names this program in the managedFields of what it writes.
	FieldManager = "provider-initor"
)

// The environment variables that a pod gives the program.
const (
	// EnvNodeName names the Node object of the machine that the pod runs on.
	EnvNodeName = "NODE_NAME"
	// EnvReportFile names the file that takes the result, see [WriteReport].
	EnvReportFile = "REPORT_FILE"
)

// Options configure [Run].
type Options struct {
	// Nodes reads and patches the node. Required.
	Nodes typedcorev1.NodeInterface
	// NodeName is the name of the Node object of the machine that this process runs on. Required.
	NodeName string
	// Sources are asked in order which instance that is; the first answer counts. At least one.
	Sources []Source
	// RequireECS makes a node that is not an ECS instance a failure. By default it is a success that says so, because
	// clusters may have such nodes.
	RequireECS bool
	// PrefixedProviderIDs writes the provider ID with the scheme "alicloud://", as the manager's flag of that name does.
	PrefixedProviderIDs bool
	// Timeout bounds one run, all retries included. Default [DefaultTimeout].
	Timeout time.Duration
}

// Outcome says what a successful run did.
type Outcome string

// The outcomes of a successful run.
const (
	// OutcomeSet says that the provider ID was empty and is set now.
	OutcomeSet Outcome = "set"
	// OutcomeUnchanged says that the node already had its provider ID.
	OutcomeUnchanged Outcome = "unchanged"
	// OutcomeSkipped says that the node is not an ECS instance; it was left alone.
	OutcomeSkipped Outcome = "skipped"
)

// Result is what a successful run found and did.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// ProviderID is the node's provider ID as it is spelled there; for a skipped node it is what that had before, if anything.
	ProviderID string `json:"providerID,omitempty"`
	// Source names the source that knew the instance. Empty for a skipped node.
	Source string `json:"source,omitempty"`
	// Reason says why the node was skipped, else it is empty.
	Reason string `json:"reason,omitempty"`
}

// Reasons why a run fails that say what to do.
var (
	// ErrConflict is wrapped by the error of a node whose provider ID is not the one of its instance. No retry helps: Kubernetes lets
	// nobody change a provider ID.
	ErrConflict = errors.New("is not that of its ECS instance")
	// ErrUnidentified is wrapped where it could not be found out which ECS instance a node is.
	ErrUnidentified = errors.New("identify node")
)

// Run sets the provider ID of the node if it is empty. Running it again is harmless. The error wraps [ErrConflict] or [ErrUnidentified], or
// is one of the API server or of ctx.
func Run(ctx context.Context, opts Options) (Result, error) {
	opts.Timeout = cmp.Or(opts.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, opts.Timeout, fmt.Errorf("gave up after %s", opts.Timeout))
	defer cancel()

	n, err := opts.get(ctx)
	if err != nil {
		return Result{}, err
	}
	switch {
	case nodes.IsVirtualKubelet(n):
		return skipped(n, "virtual-kubelet node"), nil
	case nodes.IsOnPremises(n):
		return skipped(n, "labeled "+nodes.LabelOnPremises), nil
	}
	id, err := opts.identify(ctx, n)
	switch {
	case errors.Is(err, ErrNotECS) && !opts.RequireECS:
		return skipped(n, err.Error()), nil
	case err != nil:
		return Result{}, fmt.Errorf("%w %s: %w", ErrUnidentified, n.Name, err)
	}
	return opts.assign(ctx, n, id)
}

func skipped(n *corev1.Node, reason string) Result {
	return Result{Outcome: OutcomeSkipped, ProviderID: n.Spec.ProviderID, Reason: reason}
}

func (o Options) get(ctx context.Context) (n *corev1.Node, err error) {
	err = retry(ctx, func(ctx context.Context) (bool, error) {
		var err error
		n, err = o.Nodes.Get(ctx, o.NodeName, metav1.GetOptions{})
		return err == nil || !transient(err), err
	})
	if err != nil {
		return nil, fmt.Errorf("get node %s: %w", o.NodeName, err)
	}
	return n, nil
}

// identify asks the sources until one knows the instance, or all of them deny it often enough.
func (o Options) identify(ctx context.Context, n *corev1.Node) (identity, error) {
	var id identity
	absent := 0
	err := retry(ctx, func(ctx context.Context) (bool, error) {
		var err error
		id, err = ask(ctx, o.Sources, n)
		if !errors.Is(err, ErrNotECS) {
			absent = 0
			return err == nil, err
		}
		absent++
		return absent == absentRounds, err
	})
	return id, err
}

// assign writes the provider ID into n, reading the node again whenever the write fails: only then it is known whether the
// write arrived, or somebody else was faster.
func (o Options) assign(ctx context.Context, n *corev1.Node, id identity) (Result, error) {
	want := id.String()
	if o.PrefixedProviderIDs {
		want = id.Prefixed()
	}
	result := Result{Outcome: OutcomeUnchanged, Source: id.source}
	err := retry(ctx, func(ctx context.Context) (bool, error) {
		patch, err := needsPatch(n, id.ProviderID)
		if err != nil || !patch {
			result.ProviderID = n.Spec.ProviderID
			return true, err
		}
		if err = o.patch(ctx, n, want); err == nil {
			result.Outcome, result.ProviderID = OutcomeSet, want
			return true, nil
		}
		if !transient(err) {
			return true, err
		}
		if fresh, getErr := o.Nodes.Get(ctx, n.Name, metav1.GetOptions{}); getErr == nil {
			n = fresh
		} else if !transient(getErr) {
			return true, fmt.Errorf("get node %s again: %w", n.Name, getErr)
		}
		return false, err
	})
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

func (o Options) patch(ctx context.Context, n *corev1.Node, want string) error {
	patch, err := node.PatchOf(n, nil, map[string]any{"providerID": want})
	if err != nil {
		return err
	}
	_, err = o.Nodes.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("set spec.providerID of node %s to %q: %w", n.Name, want, err)
	}
	return nil
}

// Exit codes of the program. Scripts and pods see them, so they do not change.
const (
	// ExitOK says that the provider ID is set, or was set already, or that the node is not an ECS instance.
	ExitOK = 0
	// ExitFailed says that a flag or a variable is wrong, or that the API server refuses or does not answer.
	ExitFailed = 1
	// ExitConflict says that the node has another provider ID; trying again does not help.
	ExitConflict = 2
	// ExitUnidentified says that it could not be found out which instance the node is.
	ExitUnidentified = 3
	// ExitNodes says that there are nodes which need somebody's attention: the commands for a workstation list them.
	ExitNodes = 4
)

// pauses between attempts: quick at first, because most failures of a starting node pass at once, and spread out, because
// a thousand nodes may run this at the same moment.
var pauses = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 10 * time.Second}

// retry makes attempts until one says that it is done, and returns that one's error. When ctx ends first, the error is that
// of the last attempt that ctx did not cut short, for it says what is wrong; it wraps ctx's cause too.
func retry(ctx context.Context, attempt func(context.Context) (done bool, err error)) error {
	var last error
	err := pauses.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		done, err := attempt(ctx)
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if !done && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Trying again", "reason", err)
		}
		return done, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%w)", last, context.Cause(ctx))
	}
	return last
}

// WriteReport writes r as JSON into the file at path, which in a pod is the container's termination log: whoever started
// the pod then reads from its status what was done, without access to logs.
func WriteReport(path string, r Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	// The kubelet has made the file already, with a mode of its own.
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("report the result: %w", err)
	}
	return nil
}

// ParseReport reads what [WriteReport] wrote. It says false for anything else, for example the log lines that a kubelet puts
// in the place of an empty report.
func ParseReport(text string) (Result, bool) {
	var r Result
	err := json.Unmarshal([]byte(text), &r)
	ok := err == nil && (r.Outcome == OutcomeSet || r.Outcome == OutcomeUnchanged || r.Outcome == OutcomeSkipped)
	return r, ok
}
