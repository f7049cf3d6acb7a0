package node

import (
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// Reasons of the events on nodes.
const (
	reasonInstanceNotFound  = "InstanceNotFound"
	reasonInstanceAmbiguous = "InstanceAmbiguous"
	reasonProviderIDInvalid = "InvalidProviderID"
	reasonDeletionDeferred  = "NodeDeletionDeferred"
)

// eventInterval is how long the same reason is not told again about a node: the callers ask every few seconds.
const eventInterval = time.Hour

// events tells each reason once per node and interval.
type events struct {
	mu       sync.Mutex // guards the fields below
	recorder record.EventRecorder
	told     map[eventKey]time.Time
}

type eventKey struct {
	uid    types.UID
	reason string
}

func newEvents(recorder record.EventRecorder) *events {
	return &events{recorder: recorder, told: map[eventKey]time.Time{}}
}

func (e *events) set(recorder record.EventRecorder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorder = recorder
}

func (e *events) warn(node *corev1.Node, reason, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for key, at := range e.told {
		if now.Sub(at) >= eventInterval {
			delete(e.told, key)
		}
	}
	key := eventKey{uid: node.UID, reason: reason}
	if _, told := e.told[key]; told || e.recorder == nil {
		return
	}
	e.told[key] = now
	e.recorder.Eventf(node, corev1.EventTypeWarning, reason, format, args...)
}

func (i *Instances) reportMalformed(node *corev1.Node, err error) {
	if errors.Is(err, ErrProviderIDMalformed) {
		i.events.warn(node, reasonProviderIDInvalid, "spec.providerID %q cannot be read, expected \"<region>.<instance id>\". It cannot be changed: "+
			"delete the Node and let its kubelet register it again", node.Spec.ProviderID)
	}
}

func (i *Instances) reportRegion(node *corev1.Node, err error) {
	if errors.Is(err, ErrOtherRegion) {
		i.events.warn(node, reasonProviderIDInvalid, "spec.providerID %q names another region than the cluster's, %s; the node is left alone. If it "+
			"is wrong, delete the Node and let its kubelet register it again", node.Spec.ProviderID, i.opts.Region)
	}
}

// ErrUnconfirmed says that an instance seems gone and that the evidence is not enough to delete its Node.
var ErrUnconfirmed = errors.New("the instance may exist")

// Why an instance that is missing was not reported as gone; the values of a metric label.
const (
	doubtNoControl   = "no_control"
	doubtUnseen      = "never_seen"
	doubtUnconfirmed = "unconfirmed"
	doubtCapped      = "capped"
)

func (i *Instances) doubt(reason, format string, args ...any) error {
	deletionsRefused.WithLabelValues(reason).Inc()
	return fmt.Errorf("%w: %s", ErrUnconfirmed, fmt.Sprintf(format, args...))
}
