package sources

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// maxSnapshotAge is how old a snapshot of the nodes may grow without any event: how long a Node has been without a provider ID depends on
// the time. When a silent node no longer counts as ready is known beforehand, see [backend.NodeSet.UntilSilence].
const maxSnapshotAge = time.Minute

// NodeSnapshot is what the nodes of the cluster are to all passes. After a change of nodes every Service has a pass, and each would
// come to the same.
type NodeSnapshot struct {
	// followed reports whether somebody calls changed for every change from now on; nil means that nobody does. Without that, every
	// pass reads the nodes itself.
	followed atomic.Pointer[func() bool]
	// generation counts changes.
	generation atomic.Uint64

	mu    sync.Mutex // guards the rest, and makes others wait for the pass that reads
	of    uint64
	until time.Time
	nodes *backend.NodeSet
}

// FollowChanges says that changed is called for every change once synced says so.
func (s *NodeSnapshot) FollowChanges(synced func() bool) { s.followed.Store(&synced) }

// MarkStale has the next pass read the nodes. It is called after the lister has the change and before the passes that it causes.
func (s *NodeSnapshot) MarkStale() { s.generation.Add(1) }

// NodesAt returns the nodes at a time. Nobody may change what it returns.
func (s *NodeSnapshot) NodesAt(
	lister corelisters.NodeLister, instanceID func(*corev1.Node) (string, error), now time.Time,
) (*backend.NodeSet, error) {
	read := func() (*backend.NodeSet, error) {
		objects, err := lister.List(labels.Everything())
		if err != nil {
			return nil, fmt.Errorf("list the nodes: %w", err)
		}
		return backend.Nodes(objects, instanceID, now), nil
	}
	if synced := s.followed.Load(); synced == nil || !(*synced)() {
		return read()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	generation := s.generation.Load() // before the nodes are read: a change meanwhile is read again
	if s.nodes != nil && s.of == generation && now.Before(s.until) {
		return s.nodes, nil
	}
	nodes, err := read()
	if err != nil {
		return nil, err
	}
	valid := maxSnapshotAge
	if left := nodes.UntilSilence(now); left > 0 {
		valid = min(valid, left)
	}
	s.nodes, s.of, s.until = nodes, generation, now.Add(valid)
	return nodes, nil
}
