// Package demo tells the project's whole story on a sandbox, from no cluster to a deleted load balancer, and reports what was seen at
// each step.
//
// It is the acceptance test that a newcomer can read along, not a benchmark: times are told, not judged. Beside light nodes the project's
// programs run as processes of their own, each with its ServiceAccount's token and the role of the published manifests; on real machines
// they are pods, from their images.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// stepTimeout bounds a step; the longest one, a node's release, takes about ten seconds on an idle machine.
const stepTimeout = 90 * time.Second

// nodes is how many instances the story begins with: two for the pods of a Service and one to lose.
const nodes = 3

// Options configures Run. All but Progress are required.
type Options struct {
	// BinDir holds cloud-controller-manager and provider-initor.
	BinDir string
	// Deploy holds the published manifests and the script cloud-config.sh.
	Deploy fs.FS
	// NodeKind is what the nodes are; cluster.Light when empty.
	NodeKind cluster.NodeKind
	// Kubectl is a program that is kubectl when it is called by that name.
	Kubectl string
	// Progress takes what happens as it happens; nil for nowhere.
	Progress io.Writer
}

// Report is what the story came to.
type Report struct {
	OK    bool     `json:"ok"`
	Steps []Result `json:"steps"`
}

// Result is what one step came to.
type Result struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Seen is what was observed, or the reason why the step is not as told.
	Seen    string  `json:"seen"`
	Seconds float64 `json:"seconds"`
	// Reads and Writes are the OpenAPI calls that arrived at the cloud during the step, from whichever program.
	Reads  int `json:"reads"`
	Writes int `json:"writes"`
}

// step is one step of the story. What it returns is what was seen.
type step struct {
	name string
	run  func(context.Context, *story) (string, error)
}

// steps are the story. A step relies on what the ones before it have shown.
func steps(kind cluster.NodeKind) []step {
	providerIDsAreSet, managerStarts := providerIDsAreSet, managerStarts
	if kind == cluster.Real {
		providerIDsAreSet, managerStarts = podsSetProviderIDs, managerStartsInPods
	}
	return []step{
		{"control plane", controlPlaneStarts},
		{"nodes join", nodesJoin},
		{"cloud config", cloudConfigIsMade},
		{"pods apart", podsDoNotReachEachOther},
		{"provider IDs", providerIDsAreSet},
		{"cloud controller manager", managerStarts},
		{"nodes initialised", nodesAreInitialised},
		{"routes", routesAreWritten},
		{"pods together", podsReachEachOther},
		{"service address", serviceGetsAddress},
		{"requests answered", requestsAreAnswered},
		{"node released", releasedNodeLeaves},
		{"service deleted", serviceIsDeleted},
		{"footprint", managerIsSmall},
	}
}

// Run tells the story until its end or the first step that is not as told, and leaves no process and no file behind. The error says
// which step failed and why; the report has all steps that were begun.
func Run(ctx context.Context, opts Options) (Report, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	dir, err := os.MkdirTemp("", "sandbox-demo-")
	if err != nil {
		return Report{}, fmt.Errorf("make a directory for the demo: %w", err)
	}
	s := &story{Options: opts, dir: dir}
	var report Report
	for _, step := range steps(opts.NodeKind) {
		if err = s.tell(ctx, &report, step); err != nil {
			break
		}
	}
	if err != nil {
		s.showLogs(context.WithoutCancel(ctx))
	}
	// The end is told also after a failure and after an interruption: it is what cleans up.
	end := s.tell(context.WithoutCancel(ctx), &report, step{"all stopped", everythingStops})
	err = errors.Join(err, end)
	report.OK = err == nil
	return report, err
}

// tell runs one step and adds its result to the report.
func (s *story) tell(ctx context.Context, report *Report, step step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("not done within %s", stepTimeout))
	defer cancel()
	fmt.Fprintf(s.Progress, "-> %s\n", step.name)
	start := time.Now()
	seen, err := step.run(ctx, s)
	if err != nil {
		seen = err.Error()
		err = fmt.Errorf("step %q: %w", step.name, err)
	}
	reads, writes := s.countCalls(ctx)
	report.Steps = append(report.Steps, Result{
		Name: step.name, OK: err == nil, Seen: seen, Seconds: time.Since(start).Seconds(), Reads: reads, Writes: writes,
	})
	fmt.Fprintf(s.Progress, "   %s (%.1f s, %d reads, %d writes)\n", seen, time.Since(start).Seconds(), reads, writes)
	return err
}
