package alicloud_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func TestServerCertificates(t *testing.T) {
	t.Parallel()
	expires := time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)
	config := cloud.DefaultConfig()
	config.Certificates = []cloud.CertificateConfig{{ID: "cert-1", Expires: expires}, {ID: "ca-1", CA: true}}
	c := newCloudWith(t, emulator.Options{Config: config})
	found, ok, err := c.DescribeServerCertificate(t.Context(), "cert-1")
	if err != nil || !ok || found.ID != "cert-1" || !found.Expires.Equal(expires) {
		t.Errorf("cert-1 = %v, %v, %v; want one that expires on %s", found, ok, err, expires)
	}
	for _, id := range []string{"cert-2", "ca-1"} {
		if _, ok, err := c.DescribeServerCertificate(t.Context(), id); err != nil || ok {
			t.Errorf("%s = %v, %v; want none", id, ok, err)
		}
	}
}

func TestDomainExtensions(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.Certificates = []cloud.CertificateConfig{{ID: "cert-1"}, {ID: "cert-2"}}
	c, ctx := newCloudWith(t, emulator.Options{Config: config}), t.Context()
	lb := testkit.Must(c.CreateLoadBalancer(ctx, alicloud.LoadBalancer{AddressType: alicloud.AddressInternet}, "token"))(t).ID
	if _, err := c.DescribeDomainExtensions(ctx, lb, 443); !alicloud.IsNotFound(err) {
		t.Errorf("extensions of no listener: %v, want not found", err)
	}
	group := testkit.Must(c.CreateVServerGroup(ctx, lb, "group", nil))(t)
	listener := alicloud.Listener{
		ListenerKey: alicloud.ListenerKey{Port: 443, Protocol: alicloud.ProtocolHTTPS}, VServerGroupID: group,
		Attributes: alicloud.Attributes{"ServerCertificateId": "cert-1", "HealthCheck": "off", "StickySession": "off"},
	}
	if err := c.CreateListener(ctx, lb, listener); err != nil {
		t.Fatal(err)
	}
	extension := alicloud.DomainExtension{Domain: "*.example.com", CertificateID: "cert-1"}
	extension.ID = testkit.Must(c.CreateDomainExtension(ctx, lb, 443, extension))(t)
	if diff := cmp.Diff([]alicloud.DomainExtension{extension}, testkit.Must(c.DescribeDomainExtensions(ctx, lb, 443))(t)); diff != "" {
		t.Errorf("extensions (-want +got):\n%s", diff)
	}
	if err := c.SetDomainExtension(ctx, extension.ID, "cert-2"); err != nil {
		t.Fatal(err)
	}
	extension.CertificateID = "cert-2"
	if diff := cmp.Diff([]alicloud.DomainExtension{extension}, testkit.Must(c.DescribeDomainExtensions(ctx, lb, 443))(t)); diff != "" {
		t.Errorf("extensions after the change (-want +got):\n%s", diff)
	}
	if err := c.DeleteDomainExtension(ctx, extension.ID); err != nil {
		t.Fatal(err)
	}
	if left := testkit.Must(c.DescribeDomainExtensions(ctx, lb, 443))(t); len(left) != 0 {
		t.Errorf("extensions %v left", left)
	}
}

func TestInterfacesByIPv6(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.VPCs[0].IPv6CIDR, config.VSwitches[0].IPv6CIDR = "2001:db8::/56", "2001:db8::/64"
	c := newCloudWith(t, emulator.Options{Config: config})
	for name, address := range map[string]string{"i-1": "2001:db8::1", "i-2": "2001:db8::2"} {
		if _, err := c.PutInstance(name, emulator.InstanceSpec{IPv6s: []string{address}}); err != nil {
			t.Fatal(err)
		}
	}
	query := alicloud.NetworkInterfaceQuery{IPv6s: []string{"2001:db8::2", "2001:db8::3"}, VPCID: "vpc-emulator"}
	found := testkit.Must(c.DescribeNetworkInterfaces(t.Context(), query))(t)
	if len(found) != 1 || found[0].InstanceID != "i-2" || !cmp.Equal(found[0].IPv6s, []string{"2001:db8::2"}) {
		t.Errorf("found %v, want the interface of i-2", found)
	}
	for _, address := range []string{"2001:db8::2", "2001:db9::1"} {
		if _, err := c.PutInstance("i-3", emulator.InstanceSpec{IPv6s: []string{address}}); err == nil {
			t.Errorf("the address %s is accepted", address)
		}
	}
}

func TestVPCBlocks(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.VPCs[0].IPv6CIDR = "2001:db8::/56"
	c := newCloudWith(t, emulator.Options{Config: config})
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/56")}
	if got := testkit.Must(c.DescribeVPCBlocks(t.Context(), "vpc-emulator"))(t); !slices.Equal(got, want) {
		t.Errorf("blocks %v, want %v", got, want)
	}
	if got := testkit.Must(c.DescribeVPCBlocks(t.Context(), "vpc-other"))(t); len(got) != 0 {
		t.Errorf("blocks %v of a VPC that is not there", got)
	}
}
