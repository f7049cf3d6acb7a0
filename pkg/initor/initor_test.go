package initor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

func TestPrefixedProviderID(t *testing.T) {
	t.Parallel()
	c := newCluster(nodeWithID(""))
	result, err := runOn(t, c, knows, Options{PrefixedProviderIDs: true})
	if want := testID.Prefixed(); err != nil || result.ProviderID != want || c.node(t).Spec.ProviderID != want {
		t.Errorf("%+v, %v: want %s", result, err, want)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	var (
		busy      = apierrors.NewServiceUnavailable("starting")
		forbidden = apierrors.NewForbidden(corev1.Resource("nodes"), "node-1", errors.New("no role"))
	)
	setNode := func(id string) func(*cluster) {
		return func(c *cluster) {
			c.beforePatch = func() { mustChange(c, func(n *corev1.Node) { n.Spec.ProviderID = id }) }
		}
	}
	for name, test := range map[string]struct {
		have        string
		source      Source
		opts        Options
		cluster     func(*cluster)
		want        Outcome // empty: an error
		wantErr     error   // wrapped, with an empty want
		wantStored  string
		wantPatches int
	}{
		"empty": {source: knows, want: OutcomeSet, wantStored: "cn-hangzhou.i-1", wantPatches: 1},
		"equal": {have: "cn-hangzhou.i-1", source: knows, want: OutcomeUnchanged, wantStored: "cn-hangzhou.i-1"},
		"equal in another spelling": {
			have: "alicloud://cn-hangzhou.i-1", source: knows, want: OutcomeUnchanged, wantStored: "alicloud://cn-hangzhou.i-1",
		},
		"different":        {have: "cn-hangzhou.i-2", source: knows, wantErr: ErrConflict, wantStored: "cn-hangzhou.i-2"},
		"not ECS":          {source: denies, want: OutcomeSkipped},
		"not ECS, foreign": {have: "k3s://node-1", source: denies, want: OutcomeSkipped, wantStored: "k3s://node-1"},
		"not ECS, but has to be": {
			source: denies, opts: Options{RequireECS: true}, wantErr: ErrNotECS,
		},
		"the metadata service comes up": {source: afterFailures(4, errBroken), want: OutcomeSet, wantStored: "cn-hangzhou.i-1", wantPatches: 1},
		"the link comes up": {
			source: afterFailures(absentRounds-1, ErrNotECS), want: OutcomeSet, wantStored: "cn-hangzhou.i-1", wantPatches: 1,
		},
		"nobody can tell": {source: fails, wantErr: errBroken},
		"API server busy": {
			source: knows, cluster: func(c *cluster) { c.getErrors, c.patchErrors = []error{busy, busy}, []error{busy} },
			want: OutcomeSet, wantStored: "cn-hangzhou.i-1", wantPatches: 2,
		},
		"may not read":  {source: knows, cluster: func(c *cluster) { c.getErrors = []error{forbidden} }, wantErr: forbidden},
		"may not patch": {source: knows, cluster: func(c *cluster) { c.patchErrors = []error{forbidden} }, wantErr: forbidden, wantPatches: 1},
		"somebody else sets the same meanwhile": {
			source: knows, cluster: setNode("alicloud://cn-hangzhou.i-1"), want: OutcomeUnchanged,
			wantStored: "alicloud://cn-hangzhou.i-1", wantPatches: 1,
		},
		"somebody else sets another meanwhile": {
			source: knows, cluster: setNode("k3s://node-1"), wantErr: ErrConflict, wantStored: "k3s://node-1", wantPatches: 1,
		},
		"the kubelet writes meanwhile": {
			source: knows, cluster: func(c *cluster) {
				c.beforePatch = func() { mustChange(c, func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }) }
			}, want: OutcomeSet, wantStored: "cn-hangzhou.i-1", wantPatches: 2,
		},
		"the Node is replaced meanwhile": {
			source: knows, cluster: func(c *cluster) {
				c.beforePatch = func() { mustChange(c, func(n *corev1.Node) { n.UID = types.UID("uid-2") }) }
			}, want: OutcomeSet, wantStored: "cn-hangzhou.i-1", wantPatches: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(nodeWithID(test.have))
				if test.cluster != nil {
					test.cluster(c)
				}
				result, err := runOn(t, c, test.source, test.opts)
				checkOutcome(t, result, err, test.want, test.wantErr)
				if stored := c.node(t).Spec.ProviderID; stored != test.wantStored || c.patches != test.wantPatches {
					t.Errorf("stored %q after %d patches, want %q after %d", stored, c.patches, test.wantStored, test.wantPatches)
				}
			})
		})
	}
}

func checkOutcome(t *testing.T, result Result, err error, want Outcome, wantErr error) {
	t.Helper()
	if result.Outcome != want || !errors.Is(err, wantErr) {
		t.Errorf("got %+v, %v, want outcome %q, error %v", result, err, want, wantErr)
	}
}

func TestRunTwiceWritesOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(nodeWithID(""))
	for _, want := range []Result{
		{Outcome: OutcomeSet, ProviderID: "cn-hangzhou.i-1", Source: "test source"},
		{Outcome: OutcomeUnchanged, ProviderID: "cn-hangzhou.i-1", Source: "test source"},
	} {
		got, err := runOn(t, c, knows, Options{})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v, result (-want +got):\n%s", err, diff)
		}
	}
	if c.patches != 1 {
		t.Errorf("%d patches, want 1", c.patches)
	}
}

func TestRunLeavesVirtualKubeletAlone(t *testing.T) {
	t.Parallel()
	virtual := nodeWithID("")
	virtual.Labels = map[string]string{"type": "virtual-kubelet"}
	c := newCluster(virtual)
	// The pod of such a node runs on an instance of its own, whose metadata service would answer for it.
	result, err := runOn(t, c, knows, Options{})
	if err != nil || result.Outcome != OutcomeSkipped || c.patches != 0 {
		t.Errorf("Run = %+v, %v after %d patches, want it skipped without one", result, err, c.patches)
	}
}

func TestRunEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := runOn(t, newCluster(nodeWithID("")), fails, Options{Timeout: 30 * time.Second})
		if took := time.Since(start); took != 30*time.Second || !errors.Is(err, ErrUnidentified) {
			t.Errorf("ended after %s with %v, want an identity error after 30s", took, err)
		}
	})
}

func TestRunEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Run(ctx, Options{Nodes: newCluster(nodeWithID("")).nodes(), NodeName: "node-1", Sources: []Source{fails}})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBroken) {
			t.Errorf("error %v, want the interruption and what was wrong before it", err)
		}
	})
}

func runOn(t *testing.T, c *cluster, source Source, opts Options) (Result, error) {
	t.Helper()
	opts.Nodes, opts.NodeName, opts.Sources = c.nodes(), "node-1", []Source{source}
	return Run(t.Context(), opts)
}

// afterFailures is a source that fails so many times and then knows the instance.
func afterFailures(times int, err error) Source {
	return sourceFunc(func() (node.ProviderID, error) {
		if times--; times >= 0 {
			return node.ProviderID{}, err
		}
		return testID, nil
	})
}

// mustChange is for hooks, which have nobody to return an error to.
func mustChange(c *cluster, edit func(*corev1.Node)) {
	if err := c.change(edit); err != nil {
		panic(err)
	}
}
