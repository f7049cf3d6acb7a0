package fabric

import (
	"io"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestNLBAnswersInEachZone(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one, two := newServer(t, "one", w.machine("i-a", "10.1.30.1")), newServer(t, "two", w.machine("i-b", "10.2.30.1"))
	l := w.open("TCP", 80, nil)
	w.servers(ecsServer("i-a", one.port(), 30), ecsServer("i-b", two.port(), 10))
	for _, vip := range []string{vipA, vipB} {
		wantEqual(t, "by weight through "+vip, greetings(t, w.where(l, vip, 80), 20), map[string]int{"one": 15, "two": 5})
	}
	w.change(func() { w.nlb.CrossZone = false })
	wantEqual(t, "zone a alone", greetings(t, w.where(l, vipA, 80), 5), map[string]int{"one": 5})
	wantEqual(t, "zone b alone", greetings(t, w.where(l, vipB, 80), 5), map[string]int{"two": 5})
	w.servers(ecsServer("i-a", one.port(), 30))
	if name, err := greeting(t, "", w.where(l, vipB, 80)); err == nil {
		t.Errorf("%s of another zone answers", name)
	}
	w.change(func() { w.nlb.CrossZone = true })
	wantEqual(t, "zone b, across zones", greetings(t, w.where(l, vipB, 80), 3), map[string]int{"one": 3})
}

// Zones that are apart take turns of their own: connections to one zone do not disturb the turns of the other.
func TestNLBZonesTakeTheirOwnTurns(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	w.change(func() { w.nlb.CrossZone = false })
	servers, names := []*cloud.NLBServer{}, map[string]int{}
	for _, id := range []string{"i-1-a", "i-2-a", "i-1-b", "i-2-b"} {
		ip := map[string]string{"i-1-a": "10.1.31.1", "i-2-a": "10.1.31.2", "i-1-b": "10.2.31.1", "i-2-b": "10.2.31.2"}[id]
		servers = append(servers, ecsServer(id, newServer(t, id, w.machine(id, ip)).port(), 100))
	}
	l := w.open("TCP", 80, nil)
	w.servers(servers...)
	for range 4 {
		for _, vip := range []string{vipA, vipB} {
			names[testkit.Must(greeting(t, "", w.where(l, vip, 80)))(t)]++
		}
	}
	wantEqual(t, "turns", names, map[string]int{"i-1-a": 2, "i-2-a": 2, "i-1-b": 2, "i-2-b": 2})
}

func TestNLBZoneThatGoes(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "one", w.machine("i-a", "10.1.40.1"))
	w.servers(ecsServer("i-a", one.port(), 100))
	l := w.open("TCP", 80, nil)
	stays, goes := testkit.Must(dialTo(t, "", w.where(l, vipA, 80)))(t), testkit.Must(dialTo(t, "", w.where(l, vipB, 80)))(t)
	defer stays.Close()
	defer goes.Close()
	testkit.Must(read(stays))(t)
	testkit.Must(read(goes))(t)
	w.change(func() { w.nlb.Zones = w.nlb.Zones[:1] })
	wantEqual(t, "socket of the zone", w.where(l, vipB, 80), "")
	if _, err := read(goes); err == nil {
		t.Error("a connection through a zone that is gone goes on")
	}
	_ = testkit.Must(io.WriteString(stays, "x"))(t)
	wantEqual(t, "the other zone", testkit.Must(read(stays))(t), "x")
}

// TestServersWithoutZoneServeAll: where a load balancer does not cross zones, a backend server whose zone is not known serves each of them.
func TestServersWithoutZoneServeAll(t *testing.T) {
	t.Parallel()
	f := &Fabric{holds: func(string) bool { return true }}
	for _, zone := range []string{"", zoneA, zoneB} {
		wantEqual(t, "in zone a, a server of "+zone, f.serves(settings{perZone: true}, backend{zone: zone}, VIP{Zone: zoneA}), zone != zoneB)
	}
}
