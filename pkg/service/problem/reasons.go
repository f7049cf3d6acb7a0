package problem

import corev1 "k8s.io/api/core/v1"

// Reasons of the events on a Service. The first block is the official CCM's where the meaning is the same:
// alerts and dashboards match on them.
const (
	ReasonEnsured             = "EnsuredLoadBalancer"
	ReasonCleaned             = "CleanLoadBalancer"
	ReasonSyncFailed          = "SyncLoadBalancerFailed"
	ReasonCleanFailed         = "CleanLoadBalancerFailed"
	ReasonSkipSyncBackends    = "SkipSyncBackends"
	ReasonPreservedOnDelete   = "PreservedOnDelete"
	ReasonFeatureNotSupported = "FeatureNotSupported"
	ReasonFailedSetEIPAddress = "FailedSetEIPAddress"
	ReasonFailedUpdateGate    = "FailedUpdateReadinessGate"
	ReasonAnnotationChanged   = "AnnotationChanged"

	ReasonFailedAddFinalizer    = "FailedAddFinalizer"
	ReasonFailedRemoveFinalizer = "FailedRemoveFinalizer"
	ReasonFailedUpdateStatus    = "FailedUpdateStatus"

	ReasonInvalidAnnotation       = "InvalidAnnotation"
	ReasonUnknownAnnotation       = "UnknownAnnotation"
	ReasonAnnotationNoEffect      = "AnnotationNoEffect"
	ReasonImmutableAttribute      = "ImmutableAttribute"
	ReasonListenerConflict        = "ListenerConflict"
	ReasonLoadBalancerNotReusable = "LoadBalancerNotReusable"
	ReasonMoveRefused             = "MoveRefused"
	ReasonListenersLeftAlone      = "ListenersLeftAlone"
	ReasonLoadBalancerRecreated   = "LoadBalancerRecreated"
	ReasonLoadBalancerKept        = "LoadBalancerKept"
	ReasonKeptInUse               = "KeptInUse"
	ReasonCertificateExpired      = "CertificateExpired"
	ReasonCertificateExpiring     = "CertificateExpiring"
	ReasonLoadBalancerLocked      = "LoadBalancerLocked"
	ReasonLoadBalancerStopped     = "LoadBalancerStopped"
	ReasonPaused                  = "Paused"
	ReasonQuotaReached            = "QuotaReached"
	ReasonZonesChosen             = "ZonesChosen"
	ReasonQuotaNearlyReached      = "QuotaNearlyReached"
)

// EventType is the type of an event with the reason of a [Problem].
func EventType(reason string) string {
	switch reason {
	case ReasonListenersLeftAlone, ReasonAnnotationChanged, ReasonPaused, ReasonZonesChosen:
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}
