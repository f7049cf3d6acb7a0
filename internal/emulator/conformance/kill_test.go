package conformance_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

var errKilled = errors.New("the run was killed")

// killed carries requests until a number of writes, as for a run that is killed: the answer of the last write is lost, and no call follows.
type killed struct {
	next   http.RoundTripper
	table  *api.Table
	writes int
	made   int
}

func (k *killed) RoundTrip(request *http.Request) (*http.Response, error) {
	if k.made == k.writes {
		return nil, errKilled
	}
	if k.isWrite(request) {
		k.made++
	}
	response, err := k.next.RoundTrip(request)
	if err == nil && k.made == k.writes {
		return nil, errors.Join(errKilled, response.Body.Close())
	}
	return response, err
}

func (k *killed) isWrite(request *http.Request) bool {
	action := request.URL.Query().Get("Action")
	for _, p := range k.table.Products() {
		if a := k.table.Find(p.Name, action); a != nil && p.Version == request.URL.Query().Get("Version") {
			return a.Kind == api.Write
		}
	}
	return false
}

// TestCleanAfterAKillAtEachWrite: whichever write of a scenario is the last one, clean removes all that the run has made, and nothing else.
func TestCleanAfterAKillAtEachWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, o := emulated(t)
		whole, err := conformance.Run(t.Context(), asAccount(o))
		if err != nil {
			t.Fatal(err)
		}
		kills := killsAt(t, e, "setup", func(o conformance.Options) { _, _ = conformance.Setup(t.Context(), o) })
		for _, r := range whole.Scenarios {
			if r.Skipped == "" {
				kills += killsAt(t, e, r.Name, func(o conformance.Options) {
					o = asAccount(o)
					o.Scenarios = []string{r.Name}
					_, _ = conformance.Run(t.Context(), o) // it was killed
				})
			}
		}
		t.Logf("%d kills", kills)
		if kills < 200 {
			t.Errorf("only %d kills", kills)
		}
	})
}

// killsAt kills a run at its first write, its second, and so on, until it makes no more, and returns how many there were. With -short, few
// places do.
func killsAt(t *testing.T, actions *emulator.Emulator, name string, run func(conformance.Options)) int {
	t.Helper()
	for writes := 1; ; writes++ {
		if !testkit.Tried(writes-1, 9) {
			continue
		}
		e, o, err := conformance.Emulated(settle)
		if err != nil {
			t.Fatal(err)
		}
		before := standing(t, o)
		k := &killed{next: o.Transport, table: actions.Actions(), writes: writes}
		dying := o
		dying.Transport = k
		run(dying)
		o.Tag = ""
		_, err = conformance.Clean(t.Context(), o)
		time.Sleep(time.Minute) // deletions end
		if left := difference(before, standing(t, o)); err != nil || len(left) > 0 {
			t.Errorf("%s, killed at write %d: clean ended with %v; what was made, and is left: %v", name, writes, err, left)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if k.made < writes {
			return k.made
		}
	}
}

// standing counts the resources of an emulator by their kinds, with those inside of others.
func standing(t *testing.T, o conformance.Options) map[string]int {
	t.Helper()
	data, err := o.Admin(t.Context(), http.MethodGet, "/_emulator/state", "")
	if err != nil {
		t.Fatal(err)
	}
	var state any
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	count(state, "", counts)
	delete(counts, "networkLoadBalancerJobs") // the cloud forgets them by itself
	return counts
}

// difference is by how many two counts differ.
func difference(before, after map[string]int) map[string]int {
	left := map[string]int{}
	for name, n := range after {
		if n != before[name] {
			left[name] = n - before[name]
		}
	}
	return left
}

func count(v any, name string, counts map[string]int) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			count(v[key], strings.TrimPrefix(name+"."+key, "."), counts)
		}
	case []any:
		counts[name] += len(v)
		for _, item := range v {
			count(item, name, counts)
		}
	}
}
