package bench

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// tally is a number of calls, in all and by action. Those that the cloud refused are among them, and counted by the codes of its errors.
type tally struct {
	reads, writes, refused int
	byAction, byCode       map[string]int
}

func (t tally) calls() int { return t.reads + t.writes }

// String lists the actions, the most frequent first.
func (t tally) String() string {
	if len(t.byAction) == 0 {
		return "no call"
	}
	text := mostFirst(t.byAction)
	if t.refused > 0 {
		text += fmt.Sprintf(", %d of them refused (%s)", t.refused, mostFirst(t.byCode))
	}
	return text
}

// mostFirst lists names with their numbers.
func mostFirst(numbers map[string]int) string {
	names := slices.SortedFunc(maps.Keys(numbers), func(a, b string) int {
		return cmp.Or(numbers[b]-numbers[a], strings.Compare(a, b))
	})
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d %s", numbers[name], name))
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
	t := tally{byAction: map[string]int{}, byCode: map[string]int{}}
	for _, call := range calls {
		if !f(call) {
			continue
		}
		t.byAction[call.Action]++
		if call.Code != "" {
			t.refused++
			t.byCode[call.Code]++
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
