package driver

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPreloadsKeepTheNewest: reads that began earlier and end later replace nothing that was read since, and count no longer after a write.
func TestPreloadsKeepTheNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Preloads[string]
		began := time.Now()
		add := func(value string, at time.Time) { p.Add(map[string]string{"lb-1": value}, at) }
		want := func(value string) {
			t.Helper()
			if got, ok := p.Fresh("lb-1", time.Minute); got != value || ok != (value != "") {
				t.Errorf("found %q (%v), want %q", got, ok, value)
			}
		}
		time.Sleep(time.Second)
		add("second", time.Now())
		add("first", began)
		want("second")
		time.Sleep(time.Second)
		add("third", time.Now())
		want("third")
		p.Drop("lb-1")
		add("third", time.Now())
		want("")
		time.Sleep(time.Second)
		add("fourth", time.Now())
		want("fourth")
	})
}
