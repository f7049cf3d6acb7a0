package service

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

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
