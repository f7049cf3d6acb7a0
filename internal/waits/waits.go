// Package waits is all that the manager waits for, and what ends each wait. The code takes its bounds from here, and the page
// docs/reference/waits.md is generated from [All].
package waits

import "time"

// Bounds of Services.
const (
	// NodeSilent is how long a node stays a backend whose kubelet is silent, which a cluster says of one after 40 s. Most often silent
	// kubelets are those that could not reach the API server: after an outage of it nodes are marked so, one after the other, in the seconds
	// until each has reported again (within 10 s), and their backends would go out and come back. The health checks of the load balancer have
	// found a machine that is really dead long before.
	NodeSilent = 30 * time.Second
	// NodeUnresolved is how long a node without a provider ID may stand for any backend, so that none is removed. The node controller sets the
	// provider ID within seconds; a Node that never gets one must not keep the backends of deleted Nodes for ever.
	NodeUnresolved = 15 * time.Minute
	// SlicesReplaced is how long a Service may be without any EndpointSlice that had some: authors replace them by deletion and creation,
	// which takes a moment. Those of a Service with a selector are the control plane's, which always has one, if only an empty one: without
	// any, it has most likely lost them, and makes them anew within SlicesLost.
	SlicesReplaced = 5 * time.Second
	SlicesLost     = NodeUnresolved
	// PodsRead is how long the first pass in a namespace waits for its pods.
	PodsRead = 5 * time.Second
	// UseKnown is in what time a new process usually knows which nodes every Service has. Later, nobody waits for a Service whose passes end
	// before it chooses: its load balancer cannot be read, or does not exist, and that may last for ever. UseKnownAtLast is when nobody waits
	// for a Service over which no pass has ended, either.
	UseKnown       = time.Minute
	UseKnownAtLast = 10 * time.Minute
	// NoNode is how soon a Service without any node chooses again, because all have reached their quota: others give some up in their own
	// time. FewNodes is the same where it has some of what it needs.
	NoNode   = 5 * time.Second
	FewNodes = time.Minute
	// NodeGivenUp is how soon a Service gives up a further node while others have too few: these take what is free meanwhile.
	NodeGivenUp = 30 * time.Second
	// InstanceRefused is how long an instance gets no further Services to which the cloud has refused one: whatever has used it up ends
	// without any event.
	InstanceRefused = time.Hour
	// TrafficUnconfirmed is when a Node says that it is not confirmed that load balancers no longer send to it. Most calls and jobs end earlier,
	// and each Node would be written twice.
	TrafficUnconfirmed = 30 * time.Second
	// LoadBalancerMissing is how long a load balancer must be missing, by id and by tag, before it counts as gone. Replicas and the index of
	// tags lag by a second or so.
	LoadBalancerMissing = 5 * time.Second
	// CreationRepeated is how long a creation is made again whose answer was lost. No document says how long the cloud knows a client token.
	CreationRepeated = 10 * time.Minute
	// Moved is how long a Service stays on the load balancer that it leaves, once its status shows the one that it has moved to: clients and
	// caches of DNS have some time to follow.
	Moved = 30 * time.Second
	// MovedLongest is the most that the annotation move-grace may say in place of Moved: a move holds back what says that nodes have left all
	// load balancers, and in a group the port.
	MovedLongest = time.Hour
	// Refused is the longest wait before a call that may be refused for ever, such as one for which the role lacks a permission: less than 30
	// attempts in a day.
	Refused = 2 * time.Hour
	// Replaced is the longest wait before something that works is taken away again for what the cloud refused in its place, or before
	// something is to be deleted again that others use, who go on without any event.
	Replaced = 6 * time.Hour
	// InUse is how long what a listener of ours has just left may count as used. What is used for longer is used by somebody else, who may go
	// on for ever.
	InUse = 5 * time.Minute
	// LeftoverUnread is how long a Service is held that is to be removed, while nobody knows whether it has an access control list, a
	// security group, or server groups.
	LeftoverUnread = 10 * time.Minute
	// Job and JobOfLoadBalancer are how long a job of NLB, and the creation or deletion of a load balancer, may take. The documents name no
	// bound; jobs take 0.3 to 5 s and a creation 20 s to 2 min. JobUnread is the same for a job whose state cannot be read: most have ended by
	// then, and what is there shows how.
	Job               = time.Minute
	JobOfLoadBalancer = 10 * time.Minute
	JobUnread         = 5 * time.Second
	// JobFailed is the longest wait before work is begun again whose jobs fail, and CreationFailed the same of an NLB that the cloud gives up.
	// The cloud gives no reason for either.
	JobFailed      = 5 * time.Minute
	CreationFailed = 10 * time.Minute
	// NoLoadBalancer is how long no load balancer is asked for after the account's quota refused one. Somebody may raise the quota, or delete
	// a load balancer by hand: nothing shows that but another attempt.
	NoLoadBalancer = 150 * time.Second
	// LoadBalancerFull is for how long a load balancer counts as full that has refused one more server or listener.
	LoadBalancerFull = time.Hour
	// MoveRefused is the longest wait before a Service tries to move again: an attempt takes a pass in which the old place gets no update.
	MoveRefused = 8 * time.Minute
	// ElasticAddress is the longest wait before a CLB without an elastic address is asked for one again.
	ElasticAddress = 30 * time.Minute
	// QuotasAtStart is how long the first pass waits for the quotas of the account, and QuotaRead how often they are read.
	QuotasAtStart = 3 * time.Second
	QuotaRead     = time.Hour
	// CachesOfAdapter is how long a call of a stock service controller waits for the caches before it asks to be made again.
	CachesOfAdapter = 30 * time.Second
	// ChargeType is how long after the end of the day, at which a new charge type takes effect, the old one may still be read.
	ChargeType = time.Hour
	// DriftPeriod is how often a load balancer is compared with what is known of it, up to a fifth later so that not all are at once. On a
	// CLB, each vServer group takes a call, so that backend servers are part of every second comparison.
	DriftPeriod = 10 * time.Minute
	// PassOfService is how long one pass may take, what it waits for the rate limit not counted. No pass needs this long.
	PassOfService = 30 * time.Minute
)

// Bounds of routes.
const (
	// RouteAtStart is how long a new process leaves entries alone whose node it has never seen: a node may be about to register.
	RouteAtStart = time.Minute
	// RouteWithoutNode is how long a route must have been without a node: of nodes that go all at once, the first pass may see only some to be
	// gone.
	RouteWithoutNode = 5 * time.Second
	// RoutesInTurn is the time in which a limited number of routes go whose instances may still run.
	RoutesInTurn = 10 * time.Minute
	// RouteMoved is how long a route stays whose machine has been registered again with other pod CIDRs: pods of the old ones may still run
	// there.
	RouteMoved = 3 * time.Minute
	// RouteRefused is the wait after a refusal that no repetition changes: a used-up quota, a range that the cloud does not accept, a missing
	// permission, a table that does not exist. It ends early when the node or the table changes.
	RouteRefused = 5 * time.Minute
	// TableUnread is the wait before a table is read again that the cloud refuses to show, although it may exist: whoever repairs permission
	// or endpoint does not wait for long.
	TableUnread = time.Minute
	// PodCIDRMissing is how long a new node may be without pod CIDR before an event says so: the kube-controller-manager assigns it within a
	// second or two.
	PodCIDRMissing = 30 * time.Second
	// RouteOfAdapter is how long a call of a stock route controller waits for the cloud to make a route available. That controller patches the
	// nodes' conditions only after all its calls have returned.
	RouteOfAdapter = 20 * time.Second
	// NodeUnrouted is longer than a route controller that runs needs to make a node's routes work.
	NodeUnrouted = 10 * time.Minute
	// PassOfRoutes is how long a pass may take before the controller counts as unhealthy. A pass waits for the rate limit and for a busy
	// cloud, a few minutes at most.
	PassOfRoutes = 15 * time.Minute
)

// Bounds of nodes.
const (
	// InstanceMissing is the least time over which the instance of a Node must be missing before the Node may be deleted, and
	// InstanceNeverSeen the same for one that this process never saw: the list of instances lags behind new ones.
	InstanceMissing   = 2 * time.Minute
	InstanceNeverSeen = 5 * time.Minute
	// AddressesContested is how long addresses of a Node stay that somebody else has written in place of ours, and IDRefused how long an
	// instance is not asked for whose ID ECS has refused. A kubelet with other flags, or a new Node, is no event for either.
	AddressesContested = time.Hour
	IDRefused          = time.Hour
	// NodesInTurn is the time in which a limited number of Nodes are deleted.
	NodesInTurn = 5 * time.Minute
)

// Bounds of the provider-initor.
const (
	// InitorRun bounds one run on a machine. It outlasts a restart of the API server and of the metadata service.
	InitorRun = time.Minute
	// Rollout bounds a run on all nodes from a workstation, and RolloutStuck how long the pod of one may be impossible to create, or unable to
	// start. The kubelet tries to pull an image four times in it.
	Rollout      = 10 * time.Minute
	RolloutStuck = 2 * time.Minute
)

// Wait is something that the manager waits for.
type Wait struct {
	// For is what is waited for, and Meanwhile what does not happen until then.
	For, Meanwhile string
	// Bound is after what time the wait ends all the same; 0 is never: then a person decides.
	Bound time.Duration
	// Then is what happens at the bound, and Says the event or condition that says so.
	Then, Says string
}

// Area are the waits of one part of the manager.
type Area struct {
	Name  string
	Waits []Wait
}

// All are all waits with a bound of their own, and those that only a person ends.
func All() []Area {
	return []Area{{"Services", services()}, {"Routes", routes()}, {"Nodes", nodes()}, {"Provider-initor", initor()}}
}

func services() []Wait {
	const failed = "event `SyncLoadBalancerFailed`"
	return []Wait{
		{"the kubelet of a node to report again", "the node stays a backend", NodeSilent, "The node leaves the server groups.",
			"the node's condition `Ready`"},
		{"the instance of a Node without provider ID", "no backend is removed that may be this node", NodeUnresolved,
			"Backends of deleted Nodes leave.", "event `SkipSyncBackends`"},
		{"EndpointSlices of a Service without selector that are gone", "its backends stay", SlicesReplaced, "The Service has no endpoints.",
			"event `SkipSyncBackends`"},
		{"EndpointSlices of a Service with a selector that are gone", "its backends stay", SlicesLost, "The Service has no endpoints.",
			"event `SkipSyncBackends`"},
		{"the pods of a namespace, where the policy accepts only these", "its backends stay as they are", PodsRead,
			"The next pass tries again.", "event `SkipSyncBackends`"},
		{"which nodes other Services have, in a new process", "a Service with some of the nodes chooses no others", UseKnown,
			"It chooses without those that cannot be read.", ""},
		{"a first pass over each other Service", "as above", UseKnownAtLast, "It chooses without them.", ""},
		{"a first node that is below its quota", "a Service has no backend server", NoNode,
			"The Service looks for one again.", "event `QuotaReached`"},
		{"further such nodes", "a Service has fewer than it needs", FewNodes, "It looks for them again.", "event `QuotaReached`"},
		{"other Services to take a node that one has given up", "it gives up no other one", NodeGivenUp,
			"It gives up one more while they have too few.", ""},
		{"an instance to which the cloud has refused a further load balancer", "it gets none", InstanceRefused, "It is tried again.",
			"event `QuotaReached`"},
		{"a second sign that a load balancer is gone", "nothing is created in its place", LoadBalancerMissing,
			"It is created again with another address.", "event `LoadBalancerRecreated`"},
		{"the proof that load balancers send no new connections to a node that leaves", "its condition stays `True`", TrafficUnconfirmed,
			"It is `Unknown` until the proof.", "the node's condition `LoadBalancerTraffic`"},
		{"the answer to a creation that was lost", "the same call is repeated", CreationRepeated,
			"Two searches by tag decide; then it is created anew.", failed},
		{"clients to follow a Service to another load balancer", "the old one serves, too", Moved, "What the Service has there is removed.", ""},
		{"a `move-grace` that is accepted, in place of another one", "the old load balancer serves, too", MovedLongest,
			"What the Service has there is removed.", "event `InvalidAnnotation`"},
		{"a call that the cloud refuses to be accepted", "everything that does not need it goes on", Refused,
			"It is tried again.", failed},
		{"the same in place of something that works, such as a listener of another protocol",
			"what works stays", Replaced, "It is tried again.", failed},
		{"others to stop using a server group that the Service no longer needs", "it stays without backends of the Service", Replaced,
			"Its deletion is tried again.", "event `KeptInUse`"},
		{"the deletion of a server group, security group or access control list of a deleted Service that others use", "the Service is held",
			InUse, "It stays, and the Service is released.", "event `KeptInUse`"},
		{"each of the access control list, security group and server groups of a deleted Service to be readable", "the Service is held", LeftoverUnread,
			"What there is stays, and the Service is released.", "event `KeptInUse`"},
		{"a job of NLB", "nothing else is done to the same object", Job, "What is there decides.", failed},
		{"the creation or deletion of an NLB", "as above", JobOfLoadBalancer, "What is there decides.", failed},
		{"a job of NLB whose state cannot be read", "as above", JobUnread, "What is there decides.", "event that names the right"},
		{"work whose jobs fail", "everything that does not need it goes on", JobFailed, "It is tried again.", failed},
		{"an NLB that the cloud fails to create", "the Service has none", CreationFailed, "Another one is created.",
			failed},
		{"a load balancer beyond the quota of the account", "one Service at a time asks for one", NoLoadBalancer,
			"The next Service asks.", failed},
		{"room on a load balancer that has refused a backend server or listener", "as many as fit are served", LoadBalancerFull,
			"One more is tried.", "event `QuotaReached`"},
		{"a move to another load balancer that the cloud refuses", "the Service stays where it is", MoveRefused,
			"It is tried again.", "event `MoveRefused`"},
		{"an elastic address of a CLB", "the Service shows the last one, or that of the CLB", ElasticAddress,
			"It is asked for again.", "event `FailedSetEIPAddress`"},
		{"the quotas of the account, in a new process", "no Service is served", QuotasAtStart, "Published values count.", ""},
		{"a raised quota to be seen", "the former one counts", QuotaRead, "It is read.", "event `QuotaReached`"},
		{"the caches, where a stock service controller calls", "nothing is changed", CachesOfAdapter,
			"The controller calls again.", ""},
		{"a new charge type of a CLB, after the end of the day", "it is not asked for again", ChargeType, "It is asked for again.", ""},
		{"what somebody has changed by hand", "it stays", DriftPeriod * 6 / 5, "It is repaired.", ""},
		{"the same of backend servers of a CLB", "as above", DriftPeriod * 12 / 5, "They are repaired.", ""},
		{"a pass to end", "the Service has no other one", PassOfService, "The kubelet restarts the manager.",
			"health check `service-lb-controller`"},
		{"a load balancer that is missing, while nothing else can be read either",
			"nothing is created in its place", 0, "", failed},
		{"a load balancer or a listener of a deleted Service that cannot be read or deleted",
			"the Service stays in Terminating", 0, "", "event `CleanLoadBalancerFailed`"},
		{"a part of a load balancer that cannot be read",
			"nothing of it is made or deleted; backends, listeners and certificates follow by what was read last; after a restart, only backends",
			0, "", failed},
		{"a port that somebody else's listener has", "all other ports are served", 0, "", "event `ListenerConflict`"},
		{"a load balancer that is locked for an unpaid bill", "nothing of it is changed", 0, "", "event `LoadBalancerLocked`"},
		{"the end of a pause", "nothing of the Service is changed", 0, "", "event `Paused`"},
	}
}

func routes() []Wait {
	return []Wait{
		{"nodes that may be about to register, in a new process", "routes without a node stay", RouteAtStart, "They are removed, some at a time.",
			"event `RouteRemovalWithheld`"},
		{"further nodes that go at the same time", "the route of a deleted Node stays", RouteWithoutNode, "It is removed.", ""},
		{"pods of the former pod CIDRs of a machine", "its former route stays", RouteMoved, "It is removed.", ""},
		{"the turn of a route whose Node is gone and whose instance may still run", "the route stays", RoutesInTurn,
			"Some more are removed.", "event `RouteRemovalWithheld`"},
		{"Nodes or a proof that the instances are gone, where many routes have lost their Nodes at once", "the routes stay", 0, "",
			"event `RouteRemovalWithheld`"},
		{"a route that the cloud refuses", "the node keeps its condition `NetworkUnavailable`", RouteRefused,
			"It is tried again.", "event `CreateRouteFailed`, `RouteQuota` or `RouteConflict`"},
		{"a route table that the cloud refuses to show", "routes in the other tables go on", TableUnread, "It is read again.",
			"event `DescriberRouteFailed`"},
		{"the pod CIDR of a new node", "it gets no route", PodCIDRMissing, "An event says so, and the wait goes on.", "event `NoPodCIDR`"},
		{"another program's route controller, where routes are disabled", "a new node keeps its condition `NetworkUnavailable`",
			NodeUnrouted, "The condition is cleared.", "the node's condition `NetworkUnavailable`"},
		{"a new route, where a stock route controller calls", "the call goes on",
			RouteOfAdapter, "The controller calls again.", ""},
		{"a pass to end", "no other one begins", PassOfRoutes, "The kubelet restarts the manager.",
			"health check `node-route-controller`"},
	}
}

func nodes() []Wait {
	return []Wait{
		{"further signs that the instance of a Node is gone", "the Node stays", InstanceMissing, "The Node is deleted.", ""},
		{"the same for an instance that this process never saw", "the Node stays", InstanceNeverSeen, "The Node is deleted.", ""},
		{"the turn of a Node whose instance is gone", "the Node stays", NodesInTurn, "Some more Nodes are deleted.",
			"event `NodeDeletionDeferred`"},
		{"the kubelet of a Node to leave its addresses to the manager", "those of the kubelet stay", AddressesContested,
			"They are written again.", ""},
		{"an instance whose ID ECS has refused", "nobody asks for it, and its Node stays", IDRefused, "It is asked for again.", ""},
	}
}

func initor() []Wait {
	return []Wait{
		{"the metadata service and the API server, on a machine", "the Node has no provider ID", InitorRun,
			"The kubelet starts the pod again.", "the log of the pod"},
		{"all nodes, in a run from a workstation", "nodes that are done stay so", Rollout, "The run ends, and names the others.",
			"the output, and the exit code"},
		{"the pod of a node to start, in such a run", "the other nodes go on", RolloutStuck, "The node counts as failed.", "the output"},
	}
}
