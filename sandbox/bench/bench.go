package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Options configures Run. All but Only and Progress are required.
type Options struct {
	// Only names a group of scenarios; empty means all.
	Only string
	// BinDir holds cloud-controller-manager and provider-initor.
	BinDir string
	// Self is the sandbox's own program: it runs each scenario as "bench --scenario NAME".
	Self string
	// Steady is how long the steady state of a cluster is watched. Default, and least: 5 min.
	Steady time.Duration
	// Progress takes what happens as it happens; nil for nowhere.
	Progress io.Writer
}

// scenario measures some figures in a process of its own.
type scenario struct {
	group, name string
	env         envOptions
	measure     step
}

// step measures some figures in an env.
type step func(*env, context.Context) ([]Figure, error)

// scenarios are all there are, in the order in which they run and report: small ones first.
func scenarios() []scenario {
	small, manyCLBs := envOptions{nodes: clbNodes}, publishedConfig(cloud.Limits{LoadBalancers: 10_000})
	smallNLB := envOptions{nodes: clbNodes, product: productNLB}
	ofLimits := func(nodes, balancers int) envOptions {
		return envOptions{nodes: nodes, rateLimits: true, config: publishedConfig(cloud.Limits{LoadBalancers: balancers})}
	}
	return []scenario{
		{"initor", "initor", envOptions{nodes: initorRuns}, (*env).initor},
		{"initor", "initor-fleet", envOptions{nodes: initorFleetSize, broadcastJobs: true}, (*env).initorFleet},
		{"clb", "clb", small, (*env).life},
		{"clb", "clb-restart", small, restartWithServices(firstChangeCLB)},
		{"clb", "clb-window", ofLimits(windowNodes+1, 100), (*env).publishedWindows},
		{"nlb", "nlb", smallNLB, inTurn((*env).life, (*env).ownDeletions)},
		{"nlb", "nlb-restart", smallNLB, restartWithServices(firstChangeNLB)},
		{"routes", "routes-few", envOptions{settle: routeSettle, nodes: fewNodes}, routes(fewNodes, fewMaxCalls)},
		{"routes", "routes-many", envOptions{settle: routeSettle, nodes: manyNodes}, routes(manyNodes, manyMaxCalls)},
		{"nodes", "nodes", envOptions{settle: routeSettle, nodes: joinNodes, audit: true},
			inTurn((*env).initialize, (*env).join, (*env).steady)},
		{"scale", "scale-fleet", envOptions{nodes: fleetNodes + fleetEvents, audit: true, config: manyCLBs},
			inTurn((*env).prepareFleet, (*env).newLeader, (*env).steadyFleet, (*env).nodeEvents)},
		{"scale", "scale-new", ofLimits(roomForNodes, 10_000), (*env).servicesTogether},
		// The rate limits would refuse the preparation. That the manager observes them is counted instead.
		{"scale", "scale-zone", envOptions{nodes: fleetNodes, config: withThirdZone(manyCLBs)}, inTurn((*env).prepareFleet, (*env).zoneDies)},
	}
}

// inTurn takes steps one after the other, and ends with the first one that fails.
func inTurn(steps ...step) step {
	return func(e *env, ctx context.Context) (figures []Figure, err error) {
		for _, step := range steps {
			more, err := step(e, ctx)
			if err != nil {
				return nil, err
			}
			figures = append(figures, more...)
		}
		return figures, nil
	}
}

// Groups lists what Options.Only accepts.
func Groups() []string {
	var groups []string
	for _, s := range scenarios() {
		if !slices.Contains(groups, s.group) {
			groups = append(groups, s.group)
		}
	}
	return groups
}

// Run measures the scenarios one after the other, each in a process of its own. It returns what was measured also when a scenario fails;
// the others are run nevertheless.
func Run(ctx context.Context, opts Options) (Report, error) {
	if opts.Only != "" && !slices.Contains(Groups(), opts.Only) {
		return Report{}, fmt.Errorf("--only is %q: %s are accepted", opts.Only, strings.Join(Groups(), ", "))
	}
	report := Report{Figures: []Figure{}}
	var errs []error
	for _, s := range scenarios() {
		if opts.Only != "" && s.group != opts.Only {
			continue
		}
		found, err := runProcess(ctx, opts, s.name)
		report.Figures = append(report.Figures, found.Figures...)
		if err != nil {
			errs = append(errs, fmt.Errorf("scenario %s: %w", s.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return report, errors.Join(errs...)
}

// runProcess runs one scenario as a process and reads its report.
func runProcess(ctx context.Context, opts Options, name string) (report Report, err error) {
	cmd := exec.CommandContext(ctx, opts.Self, "bench", "--scenario", name, "--bin-dir", opts.BinDir, "--steady", opts.Steady.String(),
		"--output", "json")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, opts.Progress
	// Stopped, it ends its own processes and removes its files.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err = cmd.Run(); err != nil {
		return Report{}, err
	}
	if err = json.Unmarshal(out.Bytes(), &report); err != nil {
		return Report{}, fmt.Errorf("decode the figures: %w", err)
	}
	return report, nil
}

// RunScenario measures one scenario in this process, which must have run no other one.
func RunScenario(ctx context.Context, opts Options, name string) (report Report, err error) {
	all := scenarios()
	i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
	if i < 0 {
		return Report{}, fmt.Errorf("there is no scenario %q", name)
	}
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	dir, err := os.MkdirTemp("", "sandbox-bench-")
	if err != nil {
		return Report{}, fmt.Errorf("make a directory for the scenario: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := run{binDir: opts.BinDir, dir: dir, progress: opts.Progress, start: time.Now(), steadyWindow: opts.Steady}
	r.say("scenario %s", name)
	e, err := newEnv(ctx, r, all[i].env)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	report.Figures, err = all[i].measure(e, ctx)
	return report, err
}
