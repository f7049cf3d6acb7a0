package slb

// Reasons of the events on a Service. The first block is the vendor's own controller's where the meaning is the same:
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

	ReasonInvalidAnnotation       = "InvalidAnnotation"
	ReasonUnknownAnnotation       = "UnknownAnnotation"
	ReasonAnnotationNoEffect      = "AnnotationNoEffect"
	ReasonImmutableAttribute      = "ImmutableAttribute"
	ReasonListenerConflict        = "ListenerConflict"
	ReasonLoadBalancerNotReusable = "LoadBalancerNotReusable"
	ReasonListenersLeftAlone      = "ListenersLeftAlone"
	ReasonLoadBalancerRecreated   = "LoadBalancerRecreated"
)
