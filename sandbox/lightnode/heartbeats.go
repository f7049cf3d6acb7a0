package lightnode

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	// shards spreads the renewals of many nodes over the interval: each tick renews one shard.
	shards = 10
	// renewers is how many renewals are under way at once.
	renewers = 8
)

// heartbeats renews the Leases of the nodes it knows, all from one loop.
//
// Real heartbeats, and not a switched-off node monitor, are what makes a released machine's Node turn Ready=Unknown: the stock
// cloud-node-lifecycle controller asks the cloud only about nodes that are not Ready.
type heartbeats struct {
	client   kubernetes.Interface
	interval time.Duration

	mu     sync.Mutex
	leases map[string]*heartbeat // by node name; guarded by mu
}

// heartbeat is a node's Lease as last seen, or as it is to be created. It is replaced, never changed.
type heartbeat struct {
	lease  *coordinationv1.Lease
	exists bool
}

func newHeartbeats(client kubernetes.Interface, interval time.Duration) *heartbeats {
	return &heartbeats{client: client, interval: interval, leases: map[string]*heartbeat{}}
}

// add starts the heartbeats of a node; for a node known already it changes nothing, unless the Node was made anew.
func (h *heartbeats) add(node *corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if have := h.leases[node.Name]; have != nil && have.lease.OwnerReferences[0].UID == node.UID {
		return
	}
	h.leases[node.Name] = &heartbeat{lease: &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:      node.Name,
			Namespace: corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(node.Name),
			LeaseDurationSeconds: ptr.To(max(1, int32(4*h.interval/time.Second))),
		},
	}}
}

func (h *heartbeats) remove(nodeName string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, nodeName)
}

// run renews until ctx ends.
func (h *heartbeats) run(ctx context.Context) {
	ticker := time.NewTicker(h.interval / shards)
	defer ticker.Stop()
	for tick := uint32(0); ; tick++ {
		h.renewShard(ctx, tick%shards)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (h *heartbeats) renewShard(ctx context.Context, shard uint32) {
	var group errgroup.Group
	group.SetLimit(renewers)
	for _, beat := range h.shard(shard) {
		group.Go(func() error {
			if err := h.renew(context.WithoutCancel(ctx), beat); err != nil {
				// The next round tries again, as a kubelet does.
				klog.FromContext(ctx).Error(err, "Light kubelet missed a heartbeat", "node", beat.lease.Name)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
}

func (h *heartbeats) shard(shard uint32) []*heartbeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	var beats []*heartbeat
	for name, beat := range h.leases {
		hash := fnv.New32a()
		hash.Write([]byte(name))
		if hash.Sum32()%shards == shard {
			beats = append(beats, beat)
		}
	}
	return beats
}

// renew writes one heartbeat and keeps the answer, so that the next one needs no read. One that meets a foreign write, or whose Lease
// was deleted, only learns the Lease's state: the next round renews.
func (h *heartbeats) renew(ctx context.Context, known *heartbeat) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	api := h.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	name := known.lease.Name
	next := &heartbeat{lease: known.lease.DeepCopy(), exists: true}
	next.lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	var err error
	if known.exists {
		next.lease, err = api.Update(ctx, next.lease, metav1.UpdateOptions{})
	} else {
		next.lease, err = api.Create(ctx, next.lease, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		if next.lease, err = api.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return wrap(err, "read the lease of node %s", name)
		}
		next.lease.OwnerReferences, next.lease.Spec = known.lease.OwnerReferences, known.lease.Spec
	case apierrors.IsNotFound(err):
		next = &heartbeat{lease: known.lease.DeepCopy()}
		next.lease.ResourceVersion, next.lease.UID = "", ""
	case err != nil:
		return wrap(err, "renew the lease of node %s", name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// The machine may have been switched off, or its Node made anew, while the request was under way.
	if h.leases[name] == known {
		h.leases[name] = next
	}
	return nil
}
