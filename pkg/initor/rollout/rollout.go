package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	kruiseclient "github.com/openkruise/kruise-api/client/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

// ErrNoOpenKruise says that the cluster does not know BroadcastJobs.
var ErrNoOpenKruise = errors.New("OpenKruise is not installed in the cluster")

// errTimeout is the cause of a rollout's end when its time is over.
var errTimeout = errors.New("the time limit is reached")

// Options configure a [Rollout].
type Options struct {
	// Config says what is made. Nodes is filled in by Run.
	Config Config
	// Kube and Kruise are clients of the cluster; Kruise is needed for [DriverBroadcastJob].
	Kube   kubernetes.Interface
	Kruise kruiseclient.Interface
	// Progress takes the states of all nodes again and again while they change. May be nil.
	Progress func([]NodeState)
}

// Rollout runs the initializer on nodes.
type Rollout struct {
	opts Options
}

// New returns a rollout. It makes no call.
func New(opts Options) (*Rollout, error) {
	if err := opts.Config.Validate(); err != nil {
		return nil, err
	}
	if opts.Kube == nil || (opts.Kruise == nil && opts.Config.Driver == DriverBroadcastJob) {
		return nil, errors.New("no client")
	}
	if opts.Progress == nil {
		opts.Progress = func([]NodeState) {}
	}
	return &Rollout{opts: opts}, nil
}

// Run initializes the nodes that are there when it begins and returns their states: all of them final, unless the time was
// over first or ctx ended. A node whose pod cannot be created, or has been unable to start, for two minutes fails. Unless the configuration says to keep it, what Run made is gone when it returns, after an error
// too. The error is [ErrNoOpenKruise], a [*ForeignError], or one of the API server or of ctx.
func (r *Rollout) Run(ctx context.Context) (_ []NodeState, err error) {
	if err = r.checkDriver(); err != nil {
		return nil, err
	}
	nodes, err := Machines(ctx, r.opts.Kube.CoreV1().Nodes())
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	config := r.opts.Config
	if config.AdmissionPolicy {
		if config.AdmissionPolicy, err = hasPolicies(r.opts.Kube.Discovery()); err != nil {
			return nil, err
		}
	}
	for _, n := range nodes {
		names[n.Name] = true
		config.Nodes = append(config.Nodes, n.Name)
	}
	objects := Objects(config)
	if err = r.claim(ctx, objects); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, config.Timeout, errTimeout)
	defer cancel()
	if err = r.replace(limited); err != nil {
		return nil, err
	}
	if !config.Keep {
		defer func() { err = initor.OneLine(err, r.remove(ctx, config)) }()
	}
	jobs, err := r.apply(limited, objects)
	if err != nil {
		return nil, err
	}
	waiting, creations := newPatience(), r.newRefused()
	followErr := r.follow(limited, names, jobs, waiting, creations)
	if followErr != nil && !errors.Is(context.Cause(limited), errTimeout) {
		return nil, fmt.Errorf("follow the pods: %w", followErr)
	}
	final, err := r.read(ctx, names, jobs, creations)
	waiting.judge(final, time.Now())
	return final, err
}

func (r *Rollout) checkDriver() error {
	if r.opts.Config.Driver != DriverBroadcastJob {
		return nil
	}
	installed, err := hasOpenKruise(r.opts.Kube.Discovery())
	if err == nil && !installed {
		err = ErrNoOpenKruise
	}
	return err
}

// Status returns what a rollout of the same name did so far; without one it says that there is none.
func (r *Rollout) Status(ctx context.Context) (states []NodeState, found bool, err error) {
	jobs, err := r.jobs(ctx)
	if err != nil || len(jobs) == 0 {
		return nil, false, err
	}
	creations := r.newRefused()
	creations.read(ctx, jobs)
	states, err = r.read(ctx, nil, jobs, creations)
	return states, true, err
}
