package absence

import (
	"testing"
	"time"
)

func TestProof(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rule := Rule{Answers: 3, Over: time.Minute, Spacing: 10 * time.Second, Pause: 5 * time.Minute}
	for name, test := range map[string]struct {
		answers []time.Duration
		want    bool
	}{
		"none":                    {},
		"one":                     {answers: []time.Duration{0}},
		"three within a minute":   {answers: []time.Duration{0, 20 * time.Second, 50 * time.Second}},
		"two over a minute":       {answers: []time.Duration{0, time.Minute}},
		"two close together":      {answers: []time.Duration{0, 55 * time.Second, time.Minute}},
		"three over a minute":     {answers: []time.Duration{0, 30 * time.Second, time.Minute}, want: true},
		"a long time in between":  {answers: []time.Duration{0, 30 * time.Second, 6 * time.Minute}},
		"again after a long time": {answers: []time.Duration{0, 6 * time.Minute, 6*time.Minute + 30*time.Second, 7 * time.Minute}, want: true},
	} {
		var row Row
		for _, at := range test.answers {
			row = row.Lacking(start.Add(at), rule)
		}
		if got := row.Proves(rule); got != test.want {
			t.Errorf("%s: a proof = %t, want %t: %+v", name, got, test.want, row)
		}
	}
}
