package node

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// strict is ECS as it would be if it refused calls that name a malformed id, which no document says.
type strict struct {
	API
	calls int
	all   bool // it refuses every call
}

func (s *strict) DescribeInstances(ctx context.Context, query alicloud.InstanceQuery) ([]alicloud.Instance, error) {
	s.calls++
	malformed := func(id string) bool { return strings.Contains(id, "malformed") }
	if s.all || slices.ContainsFunc(query.IDs, malformed) {
		return nil, &alicloud.Error{Action: "DescribeInstances", Code: "InvalidParameter", Status: 400, RequestID: "r-1", Message: "InstanceIds"}
	}
	return s.API.DescribeInstances(ctx, query)
}

// TestMalformedIDIsIsolated: an id that ECS would refuse keeps no other instance from being read, its Node stays and gets an event. Where
// ECS takes such ids, they are instances that it does not show.
func TestMalformedIDIsIsolated(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]bool{"refused": true, "taken": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				ecs := &strict{API: a.Client}
				var api API = ecs
				if !refuses {
					api = a.Client
				}
				c := newCluster(t, Options{API: api})
				var nodes []*corev1.Node
				for _, instance := range a.put(120) {
					nodes = append(nodes, nodeOf(instance))
				}
				bad := nodeOf(emulator.Instance{ID: "i-malformed"}, tainted)
				c.add(append(nodes, bad)...)
				monitor(c, append(nodes, bad), time.Minute)
				for _, node := range nodes {
					if exists, err := c.InstanceExists(t.Context(), node); !exists || err != nil {
						t.Fatalf("%s: exists = %v, %v", node.Name, exists, err)
					}
				}
				if gone, _ := monitor(c, append(nodes, bad), 10*time.Minute); gone != 0 {
					t.Errorf("%d nodes were called gone", gone)
				}
				if got, err := c.InstanceMetadata(t.Context(), bad); err == nil {
					t.Errorf("metadata of the malformed one = %+v", got)
				}
				want := reasonInstanceNotFound
				if refuses {
					want = reasonProviderIDInvalid
				}
				if reasons := c.eventReasons(); !slices.Equal(reasons, []string{want}) {
					t.Errorf("events %v, want one %s", reasons, want)
				}
				before := ecs.calls
				monitor(c, append(nodes, bad), 10*time.Minute)
				if refuses && ecs.calls-before > 2*12 {
					t.Errorf("%d calls in ten minutes for 120 nodes that have been silent for long", ecs.calls-before)
				}
			})
		})
	}
}

// TestRefusedCallIsNotSplitAgain: a call that is refused for another reason is split once a minute and not more often.
func TestRefusedCallIsNotSplitAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		ecs := &strict{API: a.Client, all: true}
		c := newCluster(t, Options{API: ecs})
		nodes := c.join(a.put(100))
		if gone, _ := monitor(c, nodes, 10*time.Minute); gone != 0 {
			t.Errorf("%d nodes were called gone", gone)
		}
		if ecs.calls > 10*(isolationCalls+12+1) {
			t.Errorf("%d calls in ten minutes", ecs.calls)
		}
	})
}
