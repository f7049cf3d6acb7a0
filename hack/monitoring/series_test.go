package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// start is the time of the first sample of promqltest.
var start = time.Unix(0, 0)

// evaluate returns what a query selects at a time after the start.
func evaluate(t *testing.T, engine *promql.Engine, store storage.Queryable, query string, at time.Duration) promql.Vector {
	t.Helper()
	instant, err := engine.NewInstantQuery(t.Context(), store, nil, query, start.Add(at))
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer instant.Close()
	result := instant.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return slices.Clone(vector)
}

func newEngine(t *testing.T) *promql.Engine {
	t.Helper()
	return promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
}

// labelInText is a label that the description of an alert shows.
var labelInText = regexp.MustCompile(`\$labels\.(\w+)`)

// scenes are series, one sample a minute, with which an alert fires after two hours, and others with which it never does.
var scenes = map[string]struct{ fires, quiet string }{
	"NoLeader": {
		`leader_election_master_status{name="cloud-controller-manager",pod="a"} 0x180`,
		`leader_election_master_status{name="cloud-controller-manager",pod="a"} 0x180
		leader_election_master_status{name="cloud-controller-manager",pod="b"} 1x180`,
	},
	"NoCloud": {
		`alicloud_api_request_duration_seconds_count{action="A",code="none"} 0+5x180
		alicloud_api_request_duration_seconds_count{action="A",code=""} 7x180`,
		`alicloud_api_request_duration_seconds_count{action="A",code="none"} 0+5x180
		alicloud_api_request_duration_seconds_count{action="A",code=""} 7+1x180`,
	},
	"KeyRefused": {
		`alicloud_api_request_duration_seconds_count{action="A",code="InvalidAccessKeyId.NotFound"} 0+1x180`,
		`alicloud_api_request_duration_seconds_count{action="A",code="Throttling"} 0+1x180`,
	},
	"PermissionMissing": {
		`alicloud_api_request_duration_seconds_count{action="A",code="Forbidden.RAM"} 0+1x180`,
		`alicloud_api_request_duration_seconds_count{action="A",code="Forbidden.RAM"} 3x180
		alicloud_api_request_duration_seconds_count{action="ListProductQuotas",code="Forbidden.RAM"} 0+1x180`,
	},
	"ServicesNotSynced": {
		`alicloud_slb_unsynced_services{product="CLB",reason="SyncLoadBalancerFailed"} 2x180
		alicloud_slb_unsynced_since_timestamp_seconds{product="CLB",reason="SyncLoadBalancerFailed"} 60x180`,
		`alicloud_slb_unsynced_services{product="CLB",reason="Waiting"} 2x180
		alicloud_slb_unsynced_since_timestamp_seconds{product="CLB",reason="Waiting"} 0+60x180
		alicloud_slb_unsynced_services{product="CLB",reason="InvalidAnnotation"} 2x180
		alicloud_slb_unsynced_since_timestamp_seconds{product="CLB",reason="InvalidAnnotation"} 60x180`,
	},
	"ServicesNeedTheirOwners": {
		`alicloud_slb_unsynced_services{product="NLB",reason="ListenerConflict"} 1x180`,
		`alicloud_slb_unsynced_services{product="NLB",reason="Paused"} 1x180
		alicloud_slb_unsynced_services{product="NLB",reason="SyncLoadBalancerFailed"} 1x180`,
	},
	"CallsWait": {`alicloud_api_requests_waiting{action="A"} 200x180`, `alicloud_api_requests_waiting{action="A"} 20x180`},
	"QuotaUsedUp": {`alicloud_api_request_duration_seconds_count{action="A",code="QuotaExceeded.X"} 0+1x180`,
		`alicloud_api_request_duration_seconds_count{action="A",code=""} 0+1x180`},
	"QuotaNearlyUsedUp": {`alicloud_quota_nearly_used_up{quota="q"} 1x180`, `alicloud_quota_nearly_used_up{quota="q"} 0x180`},
	"RouteTableNearlyFull": {"alicloud_route_table_entries{table=\"t\"} 170x180\nalicloud_route_table_entries_quota{table=\"t\"} 200x180",
		"alicloud_route_table_entries{table=\"t\"} 100x180\nalicloud_route_table_entries_quota{table=\"t\"} 200x180"},
	"RoutesMissing": {`alicloud_route_table_missing_routes{table="t"} 1x180`, `alicloud_route_table_missing_routes{table="t"} 0x180`},
	"RouteTableUnread": {`alicloud_route_table_last_read_timestamp_seconds{table="t"} 60x180`,
		`alicloud_route_table_last_read_timestamp_seconds{table="t"} 0+60x180`},
	"NodesNotInitialized": {`alicloud_node_uninitialized{reason="InstanceNotFound"} 1x180`,
		`alicloud_node_uninitialized{reason="InstanceNotFound"} 0x180`},
	"CertificateExpires": {`alicloud_slb_certificate_expiration_timestamp_seconds{certificate="c"} 800000x180`,
		`alicloud_slb_certificate_expiration_timestamp_seconds{certificate="c"} 8000000x180`},
	"Paused": {`alicloud_paused 1x180`, `alicloud_paused 0x180`},
}

// TestAlertsFire: each alert fires on series of its trouble, for as long as it has to, with the labels that its text shows; and not on
// series of something else.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	const at = 2 * time.Hour
	rules := alerts(t)
	engine := newEngine(t)
	for name, rule := range rules {
		scene, ok := scenes[strings.TrimPrefix(name, "CloudControllerManager")]
		if !ok {
			t.Errorf("%s: no series to test it with", name)
			continue
		}
		fires := promqltest.LoadedStorage(t, "load 1m\n\t"+strings.ReplaceAll(scene.fires, "\n", "\n\t"))
		for when := at - time.Duration(rule.For); when <= at; when += time.Minute {
			found := evaluate(t, engine, fires, rule.Expr, when)
			if len(found) == 0 {
				t.Errorf("%s does not fire after %s", name, when)
				break
			}
			for _, label := range labelInText.FindAllStringSubmatch(rule.Annotations["description"], -1) {
				if !found[0].Metric.Has(label[1]) {
					t.Errorf("%s: the text shows the label %s, and there is none in %s", name, label[1], found[0].Metric)
				}
			}
		}
		quiet := promqltest.LoadedStorage(t, "load 1m\n\t"+strings.ReplaceAll(scene.quiet, "\n", "\n\t"))
		if found := evaluate(t, engine, quiet, rule.Expr, at); len(found) > 0 {
			t.Errorf("%s fires without a reason: %s", name, found)
		}
	}
	if len(scenes) != len(rules) {
		t.Errorf("%d scenes for %d alerts", len(scenes), len(rules))
	}
}
