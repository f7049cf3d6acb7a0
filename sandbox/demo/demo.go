// Package demo runs the programs of the project end to end in a sandbox, from no cluster to a deleted load balancer, and reports what
// it observes at each step.
//
// It is an acceptance test that a newcomer can follow, not a benchmark: it reports times and sets no limits for them. The programs run in
// pods, which light nodes run as processes.
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

// stepTimeout limits a step; the longest one, the release of a node, takes about ten seconds on an idle machine.
const stepTimeout = 90 * time.Second

// nodes is the initial number of instances: two for the pods of a Service and one to release.
const nodes = 3

// Options configures Run. All but Progress are required.
type Options struct {
	// BinDir holds cloud-controller-manager and provider-initor.
	BinDir string
	// Deploy holds the published manifests and the script cloud-config.sh.
	Deploy fs.FS
	// NodeKind is the kind of the nodes; the default is cluster.Light.
	NodeKind cluster.NodeKind
	// Kubernetes is the directory of the control plane of another release, as for cluster.Options.
	Kubernetes string
	// Progress receives one line per step; nil discards it.
	Progress io.Writer
}

// Report is the result of the demo.
type Report struct {
	OK    bool     `json:"ok"`
	Steps []Result `json:"steps"`
}

// Result is the result of one step.
type Result struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Seen is the observation, or the reason of the failure.
	Seen    string  `json:"seen"`
	Seconds float64 `json:"seconds"`
	// Reads and Writes count the OpenAPI calls of all programs during the step.
	Reads  int `json:"reads"`
	Writes int `json:"writes"`
}

// step is one step of the demo. It returns what it observed.
type step struct {
	name string
	run  func(context.Context, *story) (string, error)
}

// steps are the steps of the demo in order. Each relies on the results of the earlier ones.
func steps() []step {
	return []step{
		{"control plane", controlPlaneStarts},
		{"nodes join", nodesJoin},
		{"cloud config", cloudConfigIsMade},
		{"before: pods apart", podsDoNotReachEachOther},
		{"provider IDs", podsSetProviderIDs},
		{"cloud controller manager", managerStarts},
		{"nodes initialized", nodesAreInitialized},
		{"routes", routesAreWritten},
		{"after: pods together", podsReachEachOther},
		{"service address", serviceGetsAddress},
		{"requests answered", requestsAreAnswered},
		{"node released", releasedNodeLeaves},
		{"service deleted", serviceIsDeleted},
	}
}

// Run runs all steps, or the steps up to the first failure, and leaves no process and no file behind. The error names the step that
// failed and the reason; the report has all steps that were started.
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
	for _, step := range steps() {
		if err = s.runStep(ctx, &report, step); err != nil {
			break
		}
	}
	if err != nil {
		s.showLogs(context.WithoutCancel(ctx))
	}
	// The last step cleans up, so it also runs after a failure or an interruption.
	end := s.runStep(context.WithoutCancel(ctx), &report, step{"all stopped", everythingStops})
	err = errors.Join(err, end)
	report.OK = err == nil
	return report, err
}

// runStep runs one step and adds its result to the report.
func (s *story) runStep(ctx context.Context, report *Report, step step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("not done within %s", stepTimeout))
	defer cancel()
	fmt.Fprintf(s.Progress, "-> %s\n", step.name)
	start := time.Now()
	seen, err := step.run(ctx, s)
	if err != nil {
		seen = err.Error()
		err = fmt.Errorf("step %q: %w", step.name, err)
	}
	reads, writes := s.countCalls()
	report.Steps = append(report.Steps, Result{
		Name: step.name, OK: err == nil, Seen: seen, Seconds: time.Since(start).Seconds(), Reads: reads, Writes: writes,
	})
	fmt.Fprintf(s.Progress, "   %s (%.1f s, %d reads, %d writes)\n", seen, time.Since(start).Seconds(), reads, writes)
	return err
}
