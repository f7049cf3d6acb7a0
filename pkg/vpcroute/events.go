package vpcroute

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
)

// Reasons of the events on nodes. CreatedRoute, CreateRouteFailed and DescriberRouteFailed, misspelled there, are the official
// CCM's.
const (
	reasonCreated       = "CreatedRoute"
	reasonCreateFailed  = "CreateRouteFailed"
	reasonReadFailed    = "DescriberRouteFailed"
	reasonTablesUnknown = "RouteTablesUnknown"
	reasonConflict      = "RouteConflict"
	reasonQuota         = "RouteQuota"
	reasonWithheld      = "RouteRemovalWithheld"
	reasonNoCIDR        = "NoPodCIDR"
	reasonInvalidCIDR   = "InvalidPodCIDR"
	reasonIPv6          = "IPv6RoutesNotSupported"
	reasonSourceDestErr = "SourceDestCheckFailed"
	reasonPaused        = "Paused"
)

// eventInterval is how long the same reason is not repeated for a node: most problems are met on every pass.
const eventInterval = time.Hour

// ofCluster is the subject of what concerns the cluster as a whole.
var ofCluster = events.Subject{Name: "cluster"}

// ofTable is the subject of what concerns a route table.
func ofTable(id string) events.Subject { return events.Subject{Name: "table/" + id} }

// ofFullTable is the subject of a table that the cloud called full. Until then [ofTable] may say that it is nearly so.
func ofFullTable(id string) events.Subject { return events.Subject{Name: "full/" + id} }
