package fabric

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestNamesOfNLBs(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "one", w.machine("i-a", "10.1.49.1"))
	w.servers(ecsServer("i-a", one.port(), 100))
	w.open("TCP", 80, nil)
	resolved := func() []string {
		addresses, _ := w.Resolve(nlbName + ".")
		return texts(addresses)
	}
	wantEqual(t, "private addresses", resolved(), []string{vipA, vipB})
	for range 3 {
		c := testkit.Must(w.Dial(t.Context(), "i-a", "tcp", nlbName+":80"))(t)
		wantEqual(t, "by name", testkit.Must(read(c))(t), "one")
		_ = c.Close()
	}
	if _, err := w.DialVIP(t.Context(), "tcp", nlbName+":80"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("an intranet NLB answers the internet: %v", err)
	}
	w.change(func() {
		w.nlb.AddressType = "Internet"
		w.nlb.Zones[0].PublicIP, w.nlb.Zones[1].PublicIP = "198.18.0.1", "198.18.0.2"
		w.nlb.Zones[0].IPv6 = "2001:db8::1"
	})
	wantEqual(t, "public addresses", resolved(), []string{"198.18.0.1", "198.18.0.2", "2001:db8::1"})
	c := testkit.Must(w.DialVIP(t.Context(), "tcp", nlbName+":80"))(t)
	wantEqual(t, "from the internet", testkit.Must(read(c))(t), "one")
	_ = c.Close()
	if _, err := w.DialVIP(t.Context(), "tcp", "[2001:db8::1]:80"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a private IPv6 address answers the internet: %v", err)
	}
	w.change(func() { w.nlb.IPv6AddressType = "Internet" })
	_ = testkit.Must(w.DialVIP(t.Context(), "tcp", "[2001:db8::1]:80"))(t).Close()

	w.change(func() { w.nlb.Zones[0].Status = "Shifted" })
	wantEqual(t, "without a zone that is not active", resolved(), []string{"198.18.0.2"})
	w.change(func() { w.nlb.Phase = cloud.Steady(cloud.NLBProvisioning) })
	wantEqual(t, "while it is provisioned", resolved(), []string(nil))
	var unknown *net.DNSError
	if _, err := w.Dial(t.Context(), "i-a", "tcp", nlbName+":80"); !errors.As(err, &unknown) || !unknown.IsNotFound {
		t.Errorf("error = %v, want one about the name", err)
	}
	for _, bad := range []string{"10.1.0.1", "10.1.0.1:http"} {
		if _, err := w.Dial(t.Context(), "i-a", "tcp", bad); err == nil {
			t.Errorf("%q is dialed", bad)
		}
	}
}
