package account

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/child"
)

// Namespace holds everything that the stories make in the cluster.
const Namespace = "alicloud-e2e"

// Options say where the stories run. All but Skip, Zones and ClusterCIDR are required.
type Options struct {
	Cluster Cluster
	Client  kubernetes.Interface
	Cloud   *alicloud.Client
	// VPC is that of the cluster.
	VPC     string
	Manager Manager
	// Image has a server on port 8080 that answers a request for /hostname with its host name, when called with the arguments of agnhost's
	// netexec.
	Image string
	// Zones is the annotation zone-maps of NLBs. Without it, the story of the NLB is skipped.
	Zones string
	// ClusterCIDR is the range of pods. Without it, the manager writes no routes.
	ClusterCIDR string
	// Skip are the stories that do not run, with reasons.
	Skip map[string]string
	// Poll is the time between two reads that wait for something, Patience how long a wait may last.
	Poll, Patience time.Duration
}

// Suite runs the stories.
type Suite struct {
	o       Options
	manager *child.Process // nil while none runs
	log     func(format string, args ...any)
}

// New prepares a run. It calls nothing.
func New(o Options) *Suite {
	skip := map[string]string{}
	if o.Zones == "" {
		skip["nlb"] = "no vSwitches in two zones are known: set E2E_ZONES, for example to cn-hangzhou-h:vsw-1,cn-hangzhou-i:vsw-2"
	}
	if o.ClusterCIDR == "" {
		skip["routes"] = "E2E_CLUSTER_CIDR is not set: the range of pods, for clusters whose pods need routes of the VPC"
	}
	for name, why := range o.Skip {
		skip[name] = why
	}
	o.Skip = skip
	return &Suite{o: o, log: func(string, ...any) {}}
}

// Run runs the stories as subtests, and removes everything.
func (s *Suite) Run(t *testing.T) {
	t.Helper()
	s.log = t.Logf
	ctx := t.Context()
	if err := s.Check(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Clean(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("remove everything: %v", err)
		}
		if t.Failed() {
			t.Logf("the manager's last lines:\n%s", child.Tail(s.o.Manager.Log))
		}
	}()
	if err := s.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	for _, story := range Stories() {
		t.Run(story.Name, func(t *testing.T) {
			if why := s.o.Skip[story.Name]; why != "" {
				t.Skip(why)
			}
			if err := story.run(s, ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// await polls until see returns nothing; what it returns instead is what is still missing.
func (s *Suite) await(ctx context.Context, what string, see func(ctx context.Context) (missing string)) error {
	missing, begun := "", time.Now()
	err := wait.PollUntilContextTimeout(ctx, s.o.Poll, s.o.Patience, true, func(ctx context.Context) (bool, error) {
		if err := s.ended(); err != nil {
			return false, err
		}
		if seen := see(ctx); ctx.Err() == nil { // what fails because the time is over says nothing
			missing = seen
		}
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("%s: %s: %w", what, missing, err)
	}
	s.log("%s after %.1fs", what, time.Since(begun).Seconds())
	return nil
}

// all runs steps until one fails.
func all(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// errManagerEnded means that the manager has ended by itself.
var errManagerEnded = errors.New("the manager has ended by itself")
