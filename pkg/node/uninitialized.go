package node

import (
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// Reasons of [uninitialized] that no event has.
const (
	waitingForCall    = "CallFailed"
	waitingForAddress = "NoAddress"
)

// errNotShown says that ECS does not show an instance, errAmbiguous that not exactly one has the address of a node, errNoAddress that a
// node without provider ID has no address either.
var (
	errNotShown  = errors.New("ECS does not show the instance")
	errAmbiguous = errors.New("not exactly one instance has the address")
	errNoAddress = errors.New("it has no internal address to be found by")
)

// waitingNodes are the nodes that could not be initialized, and why.
type waitingNodes struct {
	mu  sync.Mutex // guards why
	why map[types.UID]string
}

// observe takes note of an attempt to initialize the node.
func (w *waitingNodes) observe(node *corev1.Node, err error, present func() []*corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reason := ""
	if err != nil && nodes.Uninitialized(node) {
		reason = waitingReason(err)
	}
	if w.why[node.UID] == reason {
		return
	}
	if w.why == nil {
		w.why = map[types.UID]string{}
	}
	w.why[node.UID] = reason
	left := map[types.UID]bool{}
	for _, other := range present() {
		left[other.UID] = true
	}
	counts := map[string]int{}
	for uid, reason := range w.why {
		if reason == "" || !left[uid] && uid != node.UID {
			delete(w.why, uid)
			continue
		}
		counts[reason]++
	}
	for _, reason := range waitingReasons {
		uninitialized.WithLabelValues(reason).Set(float64(counts[reason]))
	}
}

// waitingReasons are all values of the label.
var waitingReasons = []string{reasonInstanceNotFound, reasonInstanceAmbiguous, reasonProviderIDInvalid, waitingForAddress, waitingForCall}

func waitingReason(err error) string {
	switch {
	case errors.Is(err, ErrProviderIDMalformed), errors.Is(err, errRefusedID), errors.Is(err, ErrOtherRegion):
		return reasonProviderIDInvalid
	case errors.Is(err, errNotShown):
		return reasonInstanceNotFound
	case errors.Is(err, errAmbiguous):
		return reasonInstanceAmbiguous
	case errors.Is(err, errNoAddress):
		return waitingForAddress
	}
	return waitingForCall
}
