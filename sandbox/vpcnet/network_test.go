//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func TestPodsReachEachOtherOnlyThroughRouteEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, one := w.machine("i-1", "vsw-a", "10.244.1.0/24", emulator.InstanceSpec{})
	two, twoNS := w.machine("i-2", "vsw-b", "10.244.2.0/24", emulator.InstanceSpec{})
	const pod = "10.244.2.7:8080"
	w.serve(twoNS, "pod", pod)
	w.serve(twoNS, "machine", two.PrivateIP+":8080")
	w.answers(one, "tcp", two.PrivateIP+":8080", "machine")
	w.unreachable(one, pod)
	w.createRoute("10.244.2.0/24", "i-2")
	w.answers(one, "tcp", pod, "pod")
	w.answers(one, "udp", pod, "pod")
	w.deleteRoutes()
	w.unreachable(one, pod)
}

func TestStoppedAndReleasedMachinesAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, oneNS := w.machine("i-1", "vsw-a", "", emulator.InstanceSpec{})
	two, twoNS := w.machine("i-2", "vsw-a", "10.244.2.0/24", emulator.InstanceSpec{})
	w.createRoute("10.244.2.0/24", "i-2")
	w.serve(twoNS, "two", two.PrivateIP+":80")
	w.serve(twoNS, "pod", "10.244.2.1:80")
	w.serve(oneNS, "one", one.PrivateIP+":80")
	w.answers(oneNS, "tcp", "10.244.2.1:80", "pod")
	put := func(status string) {
		_ = testkit.Must(w.cloud.PutInstance("i-2", emulator.InstanceSpec{Status: status}))(t)
	}
	put("Stopped")
	w.unreachable(oneNS, two.PrivateIP+":80")
	w.unreachable(oneNS, "10.244.2.1:80")
	put("Running")
	w.answers(oneNS, "tcp", "10.244.2.1:80", "pod")
	w.answers(twoNS, "tcp", one.PrivateIP+":80", "one")
	w.cloud.ReleaseInstance("i-2")
	w.unreachable(oneNS, two.PrivateIP+":80")
	w.unreachable(oneNS, "10.244.2.1:80")
	w.check(w.Detach("i-2"))
	w.check(w.Detach("i-2"))
	w.unreachable(oneNS, two.PrivateIP+":80")
}

func TestSourceAndDestinationCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, oneNS := w.machine("i-1", "vsw-a", "10.244.1.0/24", emulator.InstanceSpec{})
	two, twoNS := w.machine("i-2", "vsw-b", "10.244.2.0/24", emulator.InstanceSpec{SourceDestCheck: true})
	w.createRoute("10.244.1.0/24", "i-1")
	w.createRoute("10.244.2.0/24", "i-2")
	w.serve(twoNS, "pod", "10.244.2.1:80")
	w.serve(twoNS, "two", two.PrivateIP+":80")
	w.serve(oneNS, "one", one.PrivateIP+":80")
	w.answers(oneNS, "tcp", two.PrivateIP+":80", "two")
	w.swallowed(oneNS, "10.244.2.1:80")
	// From the other side the packets arrive at the cloud with the address of a pod.
	fromPod := func() error { return dialFrom(t, twoNS, "10.244.2.1", one.PrivateIP+":80") }
	if err := fromPod(); err == nil {
		t.Error("a packet with another source than the interface's passes the check")
	}
	w.check(w.api.DisableSourceDestCheck(t.Context(), two.NetworkInterfaceID))
	w.answers(oneNS, "tcp", "10.244.2.1:80", "pod")
	w.check(fromPod())
}

func TestRouteTableOfAVSwitch(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, func(c *emulator.Config) {
		c.RouteTables = append(c.RouteTables, routeTable("vtb-custom"))
		c.VSwitches[1].RouteTableID = "vtb-custom"
	})
	_, one := w.machine("i-1", "vsw-a", "10.244.1.0/24", emulator.InstanceSpec{})
	_, two := w.machine("i-2", "vsw-b", "", emulator.InstanceSpec{})
	w.serve(one, "pod", "10.244.1.1:80")
	_, three := w.machine("i-3", "vsw-a", "", emulator.InstanceSpec{})
	w.createRoute("10.244.1.0/24", "i-1")
	w.answers(three, "tcp", "10.244.1.1:80", "pod")
	w.unreachable(two, "10.244.1.1:80")
	failed, err := w.api.CreateRouteEntries(t.Context(),
		[]alicloud.NewRoute{{TableID: "vtb-custom", CIDR: "10.244.1.0/24", InstanceID: "i-1"}})
	w.check(err)
	for _, err := range failed {
		w.check(err)
	}
	w.answers(two, "tcp", "10.244.1.1:80", "pod")
}

func TestPlacesOutsideTheVPC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, oneNS := w.machine("i-1", "vsw-a", "", emulator.InstanceSpec{})
	premises := w.attach(Endpoint{Name: "rack-1", Address: netip.MustParseAddr("192.168.7.1"), Place: Premises})
	internet := w.attach(Endpoint{Name: "client", Address: netip.MustParseAddr("203.0.113.10"), Place: Internet})
	inside := w.attach(Endpoint{Name: "eci-1", Address: netip.MustParseAddr("10.1.200.1"), Place: Interface})
	w.serve(oneNS, "one", one.PrivateIP+":80")
	w.serve(inside, "eci", "10.1.200.1:80")
	w.serve(premises, "rack", "192.168.7.1:10250")
	w.serve(w.ControlPlane(), "api", "10.0.0.10:6443")
	for _, ns := range []*Namespace{oneNS, premises, internet, inside} {
		w.answers(ns, "tcp", "10.0.0.10:6443", "api")
	}
	for _, ns := range []*Namespace{premises, internet} {
		w.unreachable(ns, one.PrivateIP+":80")
		w.unreachable(ns, "10.1.200.1:80")
	}
	w.answers(oneNS, "tcp", "10.1.200.1:80", "eci")
	w.answers(inside, "tcp", one.PrivateIP+":80", "one")
	w.answers(w.ControlPlane(), "tcp", "192.168.7.1:10250", "rack")
	w.unreachable(oneNS, "192.168.7.1:10250")
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.machine("i-1", "vsw-a", "", emulator.InstanceSpec{})
	w.balancer(alicloud.AddressInternet, tcpListener(80), ecsBackend("i-1", 80))
	left := func() []string {
		return testkit.Must(filepath.Glob(filepath.Join(namespaces, w.options.Prefix+"-*")))(t)
	}
	if n := len(left()); n != 3 {
		t.Fatalf("%d namespaces while it runs, want those of the cloud, the control plane and the machine", n)
	}
	w.check(w.cloud.Close())
	w.check(w.Close())
	if names := left(); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestStaleNamespacesAreReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const prefix = "stale"
	for _, name := range []string{prefix + "-cloud", prefix + "-i-1"} {
		ns := testkit.Must(makeNamespace(name))(t)
		w.check(ns.handle.Close())
	}
	n := testkit.Must(New(t.Context(), Options{Prefix: prefix}))(t)
	w.check(n.Close())
	if left := testkit.Must(filepath.Glob(filepath.Join(namespaces, prefix+"-*")))(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := New(t.Context(), Options{Prefix: "Too/Long"}); err == nil {
		t.Error("a prefix that is no name is accepted")
	}
	good := netip.MustParseAddr("10.1.0.9")
	w.attach(Endpoint{Name: "a", Address: good, Place: Interface})
	other := netip.MustParseAddr("10.1.0.8")
	for _, e := range []Endpoint{{Name: "a", Address: other}, {Name: "b", Address: good}, {Name: "../b", Address: other}, {Name: "c"},
		{Name: "", Address: other}} {
		if _, err := w.Attach(t.Context(), e); err == nil {
			t.Errorf("%+v is attached", e)
		}
	}
	if err := w.Follow(t.Context(), w.cloud); err == nil {
		t.Error("a network follows two clouds")
	}
}

// TestFailedAttachLeavesNothing fails at the last step, the metadata service.
func TestFailedAttachLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken := testkit.Must(w.CloudSide().Listen(t.Context(), metadataAddress))(t)
	e := Endpoint{Name: "i-1", Address: netip.MustParseAddr("10.1.0.1")}
	if _, err := w.Attach(t.Context(), e); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("error %v, want that the address is in use", err)
	}
	w.check(taken.Close())
	if left := testkit.Must(filepath.Glob(filepath.Join(namespaces, w.options.Prefix+"-i-1")))(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	_, ns := w.machine("i-1", "vsw-a", "", emulator.InstanceSpec{})
	w.serve(w.ControlPlane(), "api", "10.0.0.10:6443")
	w.answers(ns, "tcp", "10.0.0.10:6443", "api")
}

// TestMachineThatDeletesItsLink is about a machine that harms itself: the others go on, and it can come back.
func TestMachineThatDeletesItsLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, oneNS := w.machine("i-1", "vsw-a", "", emulator.InstanceSpec{})
	_, twoNS := w.machine("i-2", "vsw-a", "", emulator.InstanceSpec{})
	h := testkit.Must(netlink.NewHandleAt(twoNS.handle))(t)
	defer h.Close()
	w.check(h.LinkDel(testkit.Must(h.LinkByName("eth0"))(t)))
	_, threeNS := w.machine("i-3", "vsw-b", "", emulator.InstanceSpec{})
	w.createRoute("10.244.2.0/24", "i-2")
	w.createRoute("10.244.3.0/24", "i-3")
	w.serve(threeNS, "pod", "10.244.3.1:80")
	ownPods(t, threeNS, "10.244.3.0/24")
	w.answers(oneNS, "tcp", "10.244.3.1:80", "pod")
	w.unreachable(oneNS, "10.244.2.1:80")
	w.check(w.Detach("i-2"))
	_, again := w.machine("i-2", "vsw-a", "", emulator.InstanceSpec{})
	w.serve(oneNS, "one", one.PrivateIP+":80")
	w.answers(again, "tcp", one.PrivateIP+":80", "one")
}

func TestWaitReportsWhatTheKernelRefused(t *testing.T) {
	t.Parallel()
	n := testkit.Must(New(t.Context(), Options{Prefix: "refused"}))(t)
	e := testkit.Must(emulator.New(emulator.Options{}))(t)
	if err := n.Follow(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Wait(ended); err != nil {
		t.Errorf("%v before anything was refused", err)
	}
	set := func(change func()) {
		n.mu.Lock()
		defer n.mu.Unlock()
		change()
	}
	bad := Endpoint{Name: "bad", Address: netip.MustParseAddr("203.0.113.9"), Place: Internet}
	set(func() { n.ports[bad.Name] = &port{Endpoint: bad, link: "longer-than-a-name-of-a-link-may-be"} })
	_ = testkit.Must(e.PutInstance("i-1", emulator.InstanceSpec{}))(t)
	if err := n.Wait(t.Context()); err == nil {
		t.Error("no error though a rule was refused")
	}
	set(func() { delete(n.ports, bad.Name) })
	if err := errors.Join(e.Close(), n.Close()); err != nil {
		t.Error(err)
	}
}
