package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/audit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

const runLong = `Runs provider-initor on every existing node, waits for the results, and deletes the objects that it created.

At the end, it prints one line per node: set, unchanged, skipped (not an ECS instance), failed, or pending if the time ran out. It reports
progress on standard error, also why pods cannot start, and skips virtual-kubelet nodes. A node whose pod has been unable to start
for two minutes fails; one with an invalid image fails at once.

Exit codes:
  0  every node was set, unchanged or skipped
  1  a flag is invalid, OpenKruise is missing, or the API server rejects a request or does not respond
  4  a node failed, or did not finish in time`

// errNodes says that nodes need attention. Standard output lists them.
var errNodes = errors.New("nodes need attention")

func newRunCommand() *cobra.Command {
	w := newWorkstation()
	return w.command("run", "Run provider-initor on every node, from a workstation", runLong, runRun, w.addJobFlags, w.addPodFlags,
		w.addOutputFlag)
}

func runRun(command *cobra.Command, w *workstation) error {
	r, err := w.rollout(newProgress(command.ErrOrStderr()).show)
	if err != nil {
		return err
	}
	states, err := r.Run(command.Context())
	switch {
	case errors.Is(err, rollout.ErrNoOpenKruise):
		return fmt.Errorf("%w: install it, or use --driver job, which creates one Job per node", err)
	case err != nil && errors.Is(command.Context().Err(), context.Canceled):
		return fmt.Errorf("interrupted: %w", err)
	case states == nil && err != nil:
		return err
	}
	// What is known of the nodes is shown also if something could not be removed.
	return initor.OneLine(writeStates(command.OutOrStdout(), w.output, states), resultOf(states, true), err)
}

// resultOf returns an error if a node failed or, where all must be finished, is pending.
func resultOf(states []rollout.NodeState, finished bool) error {
	failed, pending := 0, 0
	for _, state := range states {
		switch state.Result {
		case rollout.ResultFailed:
			failed++
		case rollout.ResultPending:
			pending++
		}
	}
	switch {
	case finished && failed+pending > 0:
		return fmt.Errorf("%w: %d of %d failed, %d not finished in time", errNodes, failed, len(states), pending)
	case failed > 0:
		return fmt.Errorf("%w: %d of %d failed", errNodes, failed, len(states))
	}
	return nil
}

// progress writes a line for each node when it is finished. Writing errors are dropped, for a reader of the progress that has gone is no reason
// to stop.
type progress struct {
	to       io.Writer
	finished sets.Set[string] // nodes
	blocked  sets.Set[string] // reasons that were written
}

func newProgress(to io.Writer) *progress {
	return &progress{to, sets.New[string](), sets.New[string]()}
}

func (p *progress) show(states []rollout.NodeState) {
	p.showBlocked(states)
	for _, s := range states {
		if s.Result != rollout.ResultPending && !p.finished.Has(s.Node) {
			p.finished.Insert(s.Node)
			_, _ = fmt.Fprintf(p.to, "%d/%d %s: %s %s\n", len(p.finished), len(states), s.Node, s.Result, cmp.Or(s.Reason, s.ProviderID))
		}
	}
}

// maxBlocked is how many reasons are written: the text of a registry may have parts that differ from node to node.
const maxBlocked = 10

// showBlocked writes why pods cannot start, each reason once, while there is time to do something about it.
func (p *progress) showBlocked(states []rollout.NodeState) {
	for i, s := range states {
		if !s.Blocked || s.Result != rollout.ResultPending || p.blocked.Has(s.Reason) || len(p.blocked) == maxBlocked {
			continue
		}
		p.blocked.Insert(s.Reason)
		others, sharing := "", 0
		for _, other := range states[i+1:] {
			if other.Blocked && other.Reason == s.Reason {
				sharing++
			}
		}
		if sharing > 0 {
			others = fmt.Sprintf(" and %d more", sharing)
		}
		_, _ = fmt.Fprintf(p.to, "waiting: the pod of %s%s cannot start: %s\n", s.Node, others, s.Reason)
	}
}

const statusLong = `Shows the results of a job in the cluster so far: a job that runs, a job that run --keep kept, or with --name the BroadcastJob of
the chart.

Exit codes:
  0  no node failed
  1  a flag is invalid, the job does not exist, or the API server rejects a request or does not respond
  4  a node failed`

func newStatusCommand() *cobra.Command {
	w := newWorkstation()
	return w.command("status", "Show the results of a run so far", statusLong, runStatus, w.addJobFlags, w.addOutputFlag)
}

func runStatus(command *cobra.Command, w *workstation) error {
	r, err := w.rollout(nil)
	if err != nil {
		return err
	}
	states, found, err := r.Status(command.Context())
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s %s/%s does not exist", w.config.Driver, w.config.Namespace, w.config.Name)
	}
	if err := writeStates(command.OutOrStdout(), w.output, states); err != nil {
		return err
	}
	return resultOf(states, false)
}

const manifestLong = `Prints the objects that run would apply, as YAML, and changes nothing.

With --driver job, it reads the names of the nodes from the cluster. Otherwise it needs no cluster.`

func newManifestCommand() *cobra.Command {
	w := newWorkstation()
	return w.command("manifest", "Print the objects that run would apply", manifestLong, runManifest, w.addJobFlags, w.addPodFlags)
}

func runManifest(command *cobra.Command, w *workstation) error {
	if w.config.Driver == rollout.DriverJob {
		nodes, err := w.machines(command.Context())
		if err != nil {
			return err
		}
		for _, n := range nodes {
			w.config.Nodes = append(w.config.Nodes, n.Name)
		}
	}
	objects, err := rollout.Objects(w.config)
	if err != nil {
		return err
	}
	return rollout.WriteManifest(command.OutOrStdout(), objects)
}

// The values of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

func writeStates(w io.Writer, output string, states []rollout.NodeState) error {
	return writeNodes(w, output, "RESULT", states, func(s rollout.NodeState) []string {
		return []string{s.Node, s.ProviderID, string(s.Result), s.Reason}
	})
}

// writeNodes writes a table with a row for each node, or one document: {"nodes":[...]}, an empty list if there are none.
func writeNodes[T any](w io.Writer, output, result string, nodes []T, row func(T) []string) error {
	if output == outputJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(map[string][]T{"nodes": append([]T{}, nodes...)}); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintf(table, "NODE\tPROVIDER ID\t%s\tREASON\n", result)
	for _, n := range nodes {
		cells := row(n)
		for i := range cells {
			cells[i] = cmp.Or(cells[i], "-") // so that blanks separate the columns
		}
		_, rowErr := fmt.Fprintln(table, strings.Join(cells, "\t"))
		err = cmp.Or(err, rowErr)
	}
	if err = cmp.Or(err, table.Flush()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

const checkLong = `Verifies the provider ID of every node: ok, missing, foreign (of another cloud), wrong (unreadable, shared by two nodes, or not
the ID of the node's instance), unverified (ECS does not show the instance to this key) or not-ecs. With --cloud-config, it compares the
IDs with the instances in ECS.

It changes nothing, and skips virtual-kubelet nodes.

Exit codes:
  0  every node is ok, unverified or not-ecs, or foreign without an ECS instance
  1  a flag is invalid, or the API server or ECS rejects a request or does not respond
  4  a node has no provider ID, or a wrong one`

func newCheckCommand() *cobra.Command {
	w := newWorkstation()
	return w.command("check", "Verify the provider IDs of all nodes", checkLong, runCheck, w.addOutputFlag, func(flags *pflag.FlagSet) {
		flags.StringVar(&w.cloudConfig, "cloud-config", "",
			"cloud-config file with region, vpcid and an access key, to compare the provider IDs with the instances that have the addresses of the nodes")
	})
}

func runCheck(command *cobra.Command, w *workstation) error {
	nodes, err := w.machines(command.Context())
	if err != nil {
		return err
	}
	findings, err := findingsOf(command, nodes, w.cloudConfig)
	if err != nil {
		return err
	}
	verdicts := audit.Verify(nodes, findings)
	err = writeNodes(command.OutOrStdout(), w.output, "VERDICT", verdicts, func(v audit.NodeVerdict) []string {
		return []string{v.Node, v.ProviderID, string(v.Verdict), v.Reason}
	})
	if err != nil {
		return err
	}
	bad := 0
	for _, verdict := range verdicts {
		if verdict.Bad() {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%w: %d of %d have no provider ID, a foreign one or a wrong one", errNodes, bad, len(verdicts))
	}
	return nil
}

// findingsOf asks ECS about the nodes, if there is a cloud-config to do so.
func findingsOf(command *cobra.Command, nodes []*corev1.Node, cloudConfig string) (map[string]initor.Finding, error) {
	if cloudConfig == "" {
		return nil, nil
	}
	source, err := ecsSource(cloudConfig, provider.EnvironmentFrom(os.Getenv))
	if err != nil {
		return nil, fmt.Errorf("--cloud-config %q: %w", cloudConfig, err)
	}
	return source.Lookup(command.Context(), nodes)
}
