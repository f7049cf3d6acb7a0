package vpcroute

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// scraped returns the figures of a route table as a scrape of /metrics shows them, sorted.
func scraped(t *testing.T, table string) []string {
	t.Helper()
	recorder := httptest.NewRecorder()
	legacyregistry.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	var lines []string
	for line := range strings.Lines(recorder.Body.String()) {
		if label := fmt.Sprintf("{table=%q}", table); strings.Contains(line, label) && !strings.Contains(line, "_timestamp_") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(strings.Replace(line, label, "", 1)), "alicloud_route_table_"))
		}
	}
	slices.Sort(lines)
	return lines
}

// unreadable is a cloud in which one route table cannot be read.
type unreadable struct {
	API
	table string
}

func (u *unreadable) DescribeRouteEntries(ctx context.Context, tableID string, ipv6 bool) ([]alicloud.RouteEntry, error) {
	if tableID == u.table {
		return nil, &alicloud.Error{Action: "DescribeRouteEntryList", Code: "Forbidden.RAM", Status: http.StatusForbidden}
	}
	return u.API.DescribeRouteEntries(ctx, tableID, ipv6)
}

// TestTableStateInMetrics: a scrape shows each managed table by itself: its entries, its quota, entries in the way, routes that are
// missing, and whether it can be read. A table that is no longer managed disappears.
func TestTableStateInMetrics(t *testing.T) {
	t.Parallel()
	const good, bad = "vtb-metrics-good", "vtb-metrics-bad"
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		for _, id := range []string{good, bad} {
			config.RouteTables = append(config.RouteTables, cloud.RouteTableConfig{ID: id, VPCID: testVPC})
		}
		a := newAccount(t, emulator.Options{Config: config})
		a.put(5)
		foreign := []alicloud.NewRoute{{TableID: good, CIDR: cidrOf(0), InstanceID: "i-4", Description: "somebody else's"}}
		if _, err := a.Client.CreateRouteEntries(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		api := &unreadable{API: a.Client}
		c := newCluster(t, a, func(o *Options) { o.API, o.Config.TableIDs = api, []string{good, bad} })
		nodes, _ := nodesOf(3)
		c.set(nodes...)
		c.passFor(time.Minute)
		want := map[string][]string{
			good: {"conflicts 1", "entries 3", "entries_quota 200", "missing_routes 1", "readable 1"},
			bad:  {"conflicts 0", "entries 3", "entries_quota 200", "missing_routes 0", "readable 1"},
		}
		check := func(when string) {
			t.Helper()
			for table, lines := range want {
				if diff := cmp.Diff(lines, scraped(t, table)); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", when, table, diff)
				}
			}
		}
		check("at first")

		api.table = bad
		c.passFor(2 * defaultPeriod)
		want[bad][4] = "readable 0"
		check("while one table cannot be read")
		age := func(table string) time.Duration {
			t.Helper()
			read, err := testutil.GetGaugeMetricValue(tableReadAt.WithLabelValues(table))
			if err != nil {
				t.Fatal(err)
			}
			return time.Since(time.Unix(int64(read), 0))
		}
		if readable, unreadable := age(good), age(bad); readable > 2*defaultPeriod || unreadable < 2*defaultPeriod {
			t.Errorf("last read %s and, for the table that cannot be read, %s ago", readable, unreadable)
		}

		api.table = ""
		c.passFor(2 * defaultPeriod)
		want[bad][4] = "readable 1"
		check("afterwards")

		forgetTables(c.managed, []string{good})
		want[bad] = nil
		check("when one is no longer managed")
	})
}

// TestDriftIsCounted: entries that somebody deleted are counted once each, when a read for drift misses them; entries of nodes that join
// are none. No other test may find drift beside it.
func TestDriftIsCounted(t *testing.T) { //nolint:paralleltest // the metric is that of the process
	synctest.Test(t, func(t *testing.T) {
		a, c, _, _ := settled(t, 3)
		a.put(4)
		count := func() float64 {
			t.Helper()
			c.passFor(2 * defaultPeriod)
			return testkit.Must(testutil.GetCounterMetricValue(driftFound))(t)
		}
		before := count()
		c.set(nodeOf(3))
		if after := count(); after != before {
			t.Errorf("drift found %v times because a node joined", after-before)
		}
		deleted := slices.DeleteFunc(testkit.Must(a.Client.DescribeRouteEntries(t.Context(), testTable, false))(t),
			func(e alicloud.RouteEntry) bool {
				return e.CIDR != cidrOf(0) && e.CIDR != cidrOf(1)
			})
		for _, err := range testkit.Must(a.Client.DeleteRouteEntries(t.Context(), deleted))(t) {
			testkit.Check(t, err)
		}
		if after := count(); after != before+2 {
			t.Errorf("drift found %v times, want one for each of the two entries", after-before)
		}
		if again := count(); again != before+2 {
			t.Errorf("drift found %v more times after it was repaired", again-before-2)
		}
	})
}
