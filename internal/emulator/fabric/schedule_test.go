package fabric

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// none is what a client without a cookie prefers.
var none cloud.BackendID

var (
	light = backendAt("10.1.0.1", 10)
	heavy = backendAt("10.1.0.2", 30)
)

func backendAt(ip string, weight int) backend {
	return backend{id: cloud.BackendID{ServerIP: ip, Port: 80}, addr: ip + ":80", weight: weight}
}

func sourceAt(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), 1000)
}

// shares counts what n connections get; each stays open unless done.
func shares(b *balancer, s settings, backends []backend, n int, done bool) map[string]int {
	got := map[string]int{}
	for i := range n {
		m := b.take(s, backends, sourceAt(i), none, time.Unix(0, 0))
		got[m.addr]++
		if done {
			b.release(m)
		}
	}
	return got
}

func TestSchedulers(t *testing.T) {
	t.Parallel()
	both := []backend{light, heavy}
	tests := []struct {
		scheduler string
		done      bool
		want      map[string]int
	}{
		{"wrr", true, map[string]int{light.addr: 10, heavy.addr: 30}},
		{"rr", true, map[string]int{light.addr: 20, heavy.addr: 20}},
		{"wlc", false, map[string]int{light.addr: 10, heavy.addr: 30}},
		{"wlc", true, map[string]int{heavy.addr: 40}},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s done=%v", test.scheduler, test.done), func(t *testing.T) {
			t.Parallel()
			wantEqual(t, "shares", shares(newBalancer(), settings{scheduler: test.scheduler}, both, 40, test.done), test.want)
		})
	}
}

func TestLeastConnectionsFollowsWhatEnds(t *testing.T) {
	t.Parallel()
	a, b := backendAt("a", 10), backendAt("b", 10)
	balancer, s := newBalancer(), settings{scheduler: "wlc"}
	shares(balancer, s, []backend{a}, 5, false)
	wantEqual(t, "the idle one catches up", shares(balancer, s, []backend{a, b}, 5, false), map[string]int{"b:80": 5})
	for range 3 {
		balancer.release(b)
	}
	wantEqual(t, "after three ended", shares(balancer, s, []backend{a, b}, 3, false), map[string]int{"b:80": 3})
}

func TestSourceHash(t *testing.T) {
	t.Parallel()
	third := backendAt("10.1.0.3", 20)
	three, two := []backend{light, heavy, third}, []backend{light, heavy}
	b := newBalancer()
	for _, scheduler := range []string{"sch", "tch", "qch"} {
		s, got := settings{scheduler: scheduler}, map[string]int{}
		for i := range 600 {
			before := b.take(s, three, sourceAt(i), none, time.Time{})
			got[before.addr]++
			if again := b.take(s, three, sourceAt(i), none, time.Time{}); again.addr != before.addr {
				t.Fatalf("%s: source %d went to %s, then to %s", scheduler, i, before.addr, again.addr)
			}
			if after := b.take(s, two, sourceAt(i), none, time.Time{}); before.addr != third.addr && after.addr != before.addr {
				t.Fatalf("%s: source %d moved though its backend stayed", scheduler, i)
			}
		}
		if got[light.addr] > got[third.addr] || got[third.addr] > got[heavy.addr] || got[light.addr] < 50 {
			t.Errorf("%s: shares %v do not follow the weights 10, 30, 20", scheduler, got)
		}
	}
	ports := func(scheduler string) int {
		seen := map[string]bool{}
		for port := range uint16(50) {
			seen[b.take(settings{scheduler: scheduler}, three, netip.AddrPortFrom(sourceAt(1).Addr(), port), none, time.Time{}).addr] = true
		}
		return len(seen)
	}
	wantEqual(t, "backends by port: source hash", ports("sch"), 1)
	wantEqual(t, "backends by port: tuple hash", ports("tch"), 3)
}

func TestPersistence(t *testing.T) {
	t.Parallel()
	b, s := newBalancer(), settings{scheduler: "rr", persistence: time.Minute}
	both, start, source := []backend{light, heavy}, time.Unix(1000, 0), sourceAt(1)
	first := b.take(s, both, source, none, start)
	for i := range 5 {
		start = start.Add(59 * time.Second)
		if m := b.take(s, both, source, none, start); m.addr != first.addr {
			t.Fatalf("connection %d left its backend within the timeout", i)
		}
	}
	b.take(s, both, sourceAt(2), none, start)
	if m := b.take(s, both, source, none, start.Add(time.Minute)); m.addr != first.addr {
		// The turn decides again, and it is the first backend server's.
		t.Errorf("after the timeout the scheduler chose %s", m.addr)
	}
	other := without(both, first)
	if m := b.take(s, other, source, none, start); m.addr == first.addr {
		t.Error("persistence keeps a source with a backend that is gone")
	}
	if m := b.take(settings{scheduler: "rr"}, both, source, heavy.id, start); m.addr != heavy.addr {
		t.Error("the preferred backend was not taken")
	}
}

func TestPersistenceForgetsSources(t *testing.T) {
	t.Parallel()
	b, s := newBalancer(), settings{persistence: time.Second}
	for i := range 5 * sticksSwept {
		b.take(s, []backend{light}, sourceAt(i), none, time.Unix(int64(i), 0))
	}
	if len(b.sticks) > sticksSwept {
		t.Errorf("%d sources are remembered, most of them expired", len(b.sticks))
	}
}
