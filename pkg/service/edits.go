package service

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

const (
	// wishDomain begins the keys of all annotations that ask for something.
	wishDomain = "service.beta.kubernetes.io/"
	// noteInterval bounds how often changes of labels and of annotations that ask for nothing have the load balancer read. They may be
	// a user's, who wants it read, or those of a program that writes them again and again, which nothing tells apart.
	noteInterval = 20 * time.Second
)

// edition is what users edit of a Service: everything but what this program, the API server and the controllers of Kubernetes write. It
// shares the memory of the Service, which nobody changes.
type edition struct {
	spec                *corev1.ServiceSpec
	annotations, labels map[string]string
}

func editionOf(svc *corev1.Service) edition {
	return edition{spec: &svc.Spec, annotations: svc.Annotations, labels: svc.Labels}
}

// sameWish reports whether both editions ask for the same.
func (e edition) sameWish(other edition) bool {
	return sameValues(e.annotations, other.annotations, isWish) && equality.Semantic.DeepEqual(e.spec, other.spec)
}

// sameNotes reports whether the rest of both editions is the same.
func (e edition) sameNotes(other edition) bool {
	return sameValues(e.annotations, other.annotations, func(key string) bool { return !isWish(key) }) &&
		sameValues(e.labels, other.labels, func(key string) bool { return !slices.Contains(ownLabels, key) })
}

func isWish(key string) bool {
	return strings.HasPrefix(key, wishDomain) || key == driver.AnnotationPaused
}

// sameValues reports whether two maps have the same values of the keys that count.
func sameValues(a, b map[string]string, counts func(key string) bool) bool {
	if maps.Equal(a, b) {
		return true
	}
	for key, value := range a {
		if other, ok := b[key]; counts(key) && (!ok || other != value) {
			return false
		}
	}
	for key := range b {
		if _, ok := a[key]; counts(key) && !ok {
			return false
		}
	}
	return true
}

// afterEdit returns the state of a Service that somebody may have edited since the last pass. An edit has the load balancer read before
// anything is planned, so that touching a Service repairs what was changed by hand in the cloud.
func (s state) afterEdit(svc *corev1.Service) state {
	before, now := s.edition, editionOf(svc)
	s.edition, s.isEdited = now, before.spec != nil && !now.sameWish(before)
	switch {
	case before.spec == nil: // the first pass reads anyway
	case !now.sameWish(before):
		s.balancer = s.balancer.Invalidate("the Service was edited")
	case !now.sameNotes(before):
		if due := s.readAt.Add(noteInterval); time.Now().Before(due) {
			s.driftAt = earlierOf(s.driftAt, due)
		} else {
			s.balancer = s.balancer.Invalidate("a label or annotation of the Service was edited")
		}
	}
	return s
}

func earlierOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// ownLabels are those that passes write themselves.
var ownLabels = []string{driver.LabelLoadBalancerID, driver.LabelSecurityGroupID, driver.LabelHash}

// Why a pass writes, as the log of the writes says.
const (
	causeNew      = "new Service"
	causeStart    = "start of the manager"
	causeEdit     = "edit of the Service"
	causeDrift    = "drift"
	causeEvent    = "endpoints or nodes"
	causeDeletion = "deletion"
	causeMove     = "move to another load balancer"
)

// withCause returns the state of a Service at the start of a pass. While passes fail or have to wait, the first of their causes stands.
func (s state) withCause(svc *corev1.Service) state {
	before, now := s.edition, editionOf(svc)
	switch {
	case before.spec == nil && s.carriesFinalizer(svc):
		s.cause = causeStart
	case before.spec == nil:
		s.cause = causeNew
	case !now.sameWish(before), !now.sameNotes(before):
		s.cause = causeEdit
	case s.cause != "":
	case !s.driftAt.IsZero() && !time.Now().Before(s.driftAt):
		s.cause = causeDrift
	default:
		s.cause = causeEvent
	}
	return s
}

// causeAfter returns the state after a pass: the next one has a cause of its own, unless this one failed.
func (s state) causeAfter(err error) state {
	if err == nil {
		s.cause = ""
	}
	return s
}
