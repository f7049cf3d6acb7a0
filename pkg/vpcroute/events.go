package vpcroute

import (
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Reasons of the events on nodes. CreatedRoute and CreateRouteFailed are the official CCM's.
const (
	reasonCreated       = "CreatedRoute"
	reasonCreateFailed  = "CreateRouteFailed"
	reasonConflict      = "RouteConflict"
	reasonQuota         = "RouteQuota"
	reasonNoCIDR        = "NoPodCIDR"
	reasonInvalidCIDR   = "InvalidPodCIDR"
	reasonIPv6          = "IPv6RoutesNotSupported"
	reasonSourceDestErr = "SourceDestCheckFailed"
)

// ofCluster stands for the UID of a node in what is told of the cluster as a whole.
const ofCluster types.UID = "cluster"

// eventInterval is how long the same reason is not told again about a node: most problems are met on every pass.
const eventInterval = time.Hour

// events tells each warning once per node and interval, and everything again after the node's problem went away.
type events struct {
	recorder record.EventRecorder

	mu      sync.Mutex // guards emitted
	emitted map[eventKey]time.Time
}

type eventKey struct {
	uid    types.UID
	reason string
}

func newEvents(recorder record.EventRecorder) *events {
	return &events{recorder: recorder, emitted: map[eventKey]time.Time{}}
}

func (e *events) normal(node *corev1.Node, reason, format string, args ...any) {
	e.recorder.Eventf(node, corev1.EventTypeNormal, reason, format, args...)
}

func (e *events) warn(node *corev1.Node, reason, format string, args ...any) {
	if e.first(node.UID, reason) {
		e.recorder.Eventf(node, corev1.EventTypeWarning, reason, format, args...)
	}
}

func (e *events) first(uid types.UID, reason string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for key, at := range e.emitted {
		if now.Sub(at) >= eventInterval {
			delete(e.emitted, key)
		}
	}
	key := eventKey{uid: uid, reason: reason}
	if _, told := e.emitted[key]; told {
		return false
	}
	e.emitted[key] = now
	return true
}

// solved lets a later problem of the node be told at once.
func (e *events) solved(uid types.UID, reasons ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, reason := range reasons {
		delete(e.emitted, eventKey{uid: uid, reason: reason})
	}
}

// codeOf returns the cloud's code, for a metric label.
func codeOf(err error) string {
	var answer *alicloud.Error
	if errors.As(err, &answer) && answer.Code != "" {
		return answer.Code
	}
	return "none"
}
