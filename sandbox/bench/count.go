package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// tally is a number of calls, in all and by action. Those that the cloud refused are among them.
type tally struct {
	reads, writes, refused int
	byAction               map[string]int
}

func (t tally) calls() int { return t.reads + t.writes }

// String lists the actions, the most frequent first.
func (t tally) String() string {
	actions := slices.SortedFunc(maps.Keys(t.byAction), func(a, b string) int {
		if n := t.byAction[b] - t.byAction[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	parts := make([]string, 0, len(actions)+1)
	for _, action := range actions {
		parts = append(parts, fmt.Sprintf("%d %s", t.byAction[action], action))
	}
	if len(parts) == 0 {
		return "no call"
	}
	if t.refused > 0 {
		parts = append(parts, fmt.Sprintf("%d of them refused", t.refused))
	}
	return strings.Join(parts, ", ")
}

// filter chooses the calls that a figure is about.
type filter func(emulator.Call) bool

func everything(emulator.Call) bool { return true }

func ofProduct(product string) filter {
	return func(c emulator.Call) bool { return c.Product == product }
}

// exceptAction leaves one action out.
func exceptAction(f filter, action string) filter {
	return func(c emulator.Call) bool { return c.Action != action && f(c) }
}

// orAction takes one action more.
func orAction(f filter, action string) filter {
	return func(c emulator.Call) bool { return c.Action == action || f(c) }
}

func count(calls []emulator.Call, f filter) tally {
	t := tally{byAction: map[string]int{}}
	for _, call := range calls {
		if !f(call) {
			continue
		}
		t.byAction[call.Action]++
		if call.Code != "" {
			t.refused++
		}
		if call.Kind == "write" {
			t.writes++
		} else {
			t.reads++
		}
	}
	return t
}

// quantile is the value below or at which the share q of the values lies; 0 without values.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	index := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(index, 0), len(sorted)-1)]
}

// writes leaves reads out.
func writes(f filter) filter {
	return func(c emulator.Call) bool { return c.Kind == "write" && f(c) }
}
