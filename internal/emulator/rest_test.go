package emulator_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	ecsapi "github.com/aliyun/alibaba-cloud-sdk-go/services/ecs"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"
	vpcapi "github.com/aliyun/alibaba-cloud-sdk-go/services/vpc"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// newCertificate makes a self-signed certificate and its key in PEM form.
func newCertificate(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der := testkit.Must(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	keyDER := testkit.Must(x509.MarshalPKCS8PrivateKey(private))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

func (a *account) upload(certificate, key string) (*slbapi.UploadServerCertificateResponse, error) {
	r := slbapi.CreateUploadServerCertificateRequest()
	r.ServerCertificate, r.PrivateKey, r.ServerCertificateName = certificate, key, "uploaded"
	return a.slb.UploadServerCertificate(r)
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.Certificates = []cloud.CertificateConfig{{ID: "ca-1", CA: true, CommonName: "authority"}}
	a := newAccount(t, emulator.Options{Config: config})
	certificate, key := newCertificate(t, "example.test")
	made := testkit.Must(a.upload(certificate, key))(t)
	list := slbapi.CreateDescribeServerCertificatesRequest()
	list.ServerCertificateId = made.ServerCertificateId
	got := testkit.Must(a.slb.DescribeServerCertificates(list))(t).ServerCertificates.ServerCertificate
	wantEqual(t, "certificate",
		[]any{len(got), got[0].CommonName, got[0].SubjectAlternativeNames.SubjectAlternativeName, len(got[0].Fingerprint),
			got[0].ExpireTimeStamp > time.Now().UnixMilli()},
		[]any{1, "example.test", []string{"example.test"}, 59, true})
	_, other := newCertificate(t, "other.test")
	_, err := a.upload(certificate, other)
	wantCode(t, err, "CertificateNotMatchPrivateKey", 400)
	_, err = a.upload(certificate, "")
	wantCode(t, err, "MissingParameter", 400)
	ca := testkit.Must(a.slb.DescribeCACertificates(slbapi.CreateDescribeCACertificatesRequest()))(t).CACertificates.CACertificate
	wantEqual(t, "authorities", []string{ca[0].CACertificateId, ca[0].CommonName}, []string{"ca-1", "authority"})
	remove := slbapi.CreateDeleteServerCertificateRequest()
	remove.ServerCertificateId = made.ServerCertificateId
	testkit.Must(a.slb.DeleteServerCertificate(remove))(t)
	wantEqual(t, "certificates", len(testkit.Must(a.slb.DescribeServerCertificates(list))(t).ServerCertificates.ServerCertificate), 0)
	for _, c := range a.Calls(0) {
		if c.Parameters["PrivateKey"] != "" && c.Parameters["PrivateKey"] != "***" {
			t.Error("the journal shows a private key")
		}
	}
}

func TestDomainExtensions(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	cert := testkit.Must(a.upload(newCertificate(t, "a.test")))(t).ServerCertificateId
	lb := a.newLB()
	secure := slbapi.CreateCreateLoadBalancerHTTPSListenerRequest()
	secure.LoadBalancerId, secure.ListenerPort, secure.VServerGroupId, secure.ServerCertificateId = lb, requests.NewInteger(443), a.newGroup(lb, ""), cert
	testkit.Must(a.slb.CreateLoadBalancerHTTPSListener(secure))(t)
	create := func(domain string) (*slbapi.CreateDomainExtensionResponse, error) {
		r := slbapi.CreateCreateDomainExtensionRequest()
		r.LoadBalancerId, r.ListenerPort, r.Domain, r.ServerCertificateId = lb, requests.NewInteger(443), domain, cert
		return a.slb.CreateDomainExtension(r)
	}
	id := testkit.Must(create("a.test"))(t).DomainExtensionId
	_, err := create("a.test")
	wantCode(t, err, "DomainExtensionAlreadyExists", 400)
	testkit.Must(create("b.test"))(t)
	testkit.Must(create("c.test"))(t)
	_, err = create("d.test")
	wantCode(t, err, "DomainExtensionNumberOverLimit", 400)
	set := slbapi.CreateSetDomainExtensionAttributeRequest()
	set.DomainExtensionId, set.ServerCertificateId = id, "cert-none"
	_, err = a.slb.SetDomainExtensionAttribute(set)
	wantCode(t, err, "InvalidParameter.ServerCertificateId", 400)
	set.ServerCertificateId = cert
	testkit.Must(a.slb.SetDomainExtensionAttribute(set))(t)
	remove := slbapi.CreateDeleteDomainExtensionRequest()
	remove.DomainExtensionId = id
	testkit.Must(a.slb.DeleteDomainExtension(remove))(t)
	_, err = a.slb.DeleteDomainExtension(remove)
	wantCode(t, err, "InvalidParameter.DomainExtensionId", 400)
	list := slbapi.CreateDescribeDomainExtensionsRequest()
	list.LoadBalancerId, list.ListenerPort = lb, requests.NewInteger(443)
	left := testkit.Must(a.slb.DescribeDomainExtensions(list))(t).DomainExtensions.DomainExtension
	wantEqual(t, "left", sorted(left, func(x slbapi.DomainExtension) string { return x.Domain }), []string{"b.test", "c.test"})
}

func TestACLs(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	create := slbapi.CreateCreateAccessControlListRequest()
	create.AclName = "office"
	id := testkit.Must(a.slb.CreateAccessControlList(create))(t).AclId
	add := func(entries string) error {
		r := slbapi.CreateAddAccessControlListEntryRequest()
		r.AclId, r.AclEntrys = id, entries
		_, err := a.slb.AddAccessControlListEntry(r)
		return err
	}
	testkit.Must(0, add(`[{"entry":"10.0.0.0/8","comment":"net"},{"entry":"192.0.2.1"},{"entry":"192.0.2.1"}]`))(t)
	wantCode(t, add(`[{"entry":"10.0.0.0/8"}]`), "InvalidParam.AclEntryExists", 400)
	wantCode(t, add(`[{"entry":"2001:db8::/32"}]`), "IllegalEntry", 400)
	wantCode(t, add(`[{"entry":"office"}]`), "InvalidParameter", 400)
	var many []string
	for i := range 51 {
		many = append(many, fmt.Sprintf(`{"entry":"172.16.0.%d"}`, i))
	}
	wantCode(t, add("["+strings.Join(many, ",")+"]"), "InvalidParameter", 400)
	drop := slbapi.CreateRemoveAccessControlListEntryRequest()
	drop.AclId, drop.AclEntrys = id, `[{"entry":"192.0.2.1/32"}]`
	testkit.Must(a.slb.RemoveAccessControlListEntry(drop))(t)

	lb := a.newLB()
	listener := slbapi.CreateCreateLoadBalancerTCPListenerRequest()
	listener.LoadBalancerId, listener.ListenerPort, listener.VServerGroupId = lb, requests.NewInteger(80), a.newGroup(lb, "")
	listener.AclStatus, listener.AclType, listener.AclId = "on", "white", "acl-none"
	_, err := a.slb.CreateLoadBalancerTCPListener(listener)
	wantCode(t, err, "AclNotExist", 400)
	listener.AclId = id
	testkit.Must(a.slb.CreateLoadBalancerTCPListener(listener))(t)
	describe := slbapi.CreateDescribeAccessControlListAttributeRequest()
	describe.AclId = id
	got := testkit.Must(a.slb.DescribeAccessControlListAttribute(describe))(t)
	wantEqual(t, "list", []any{got.AclEntrys.AclEntry, got.RelatedListeners.RelatedListener[0].LoadBalancerId},
		[]any{[]slbapi.AclEntry{{AclEntryIP: "10.0.0.0/8", AclEntryComment: "net"}}, lb})
	all := testkit.Must(a.slb.DescribeAccessControlLists(slbapi.CreateDescribeAccessControlListsRequest()))(t)
	wantEqual(t, "lists", []any{all.TotalCount, all.Acls.Acl[0].AclName}, []any{1, "office"})
	remove := slbapi.CreateDeleteAccessControlListRequest()
	remove.AclId = id
	_, err = a.slb.DeleteAccessControlList(remove)
	wantCode(t, err, "OperationFailed.AclBindedWithVip", 400)
	testkit.Must(0, a.deleteListener(lb, 80, "tcp"))(t)
	testkit.Must(a.slb.DeleteAccessControlList(remove))(t)
}

func TestWhereThingsCanBe(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	wantEqual(t, "slb region", testkit.Must(a.slb.DescribeRegions(slbapi.CreateDescribeRegionsRequest()))(t).Regions.Region[0].RegionId,
		region)
	wantEqual(t, "ecs region", testkit.Must(a.ecs.DescribeRegions(ecsapi.CreateDescribeRegionsRequest()))(t).Regions.Region[0].RegionId,
		region)
	zones := testkit.Must(a.slb.DescribeZones(slbapi.CreateDescribeZonesRequest()))(t).Zones.Zone
	wantEqual(t, "slb zone", []string{zones[0].ZoneId, zones[0].SlaveZones.SlaveZone[0].ZoneId}, []string{"cn-hangzhou-a", "cn-hangzhou-b"})
	wantEqual(t, "ecs zones", len(testkit.Must(a.ecs.DescribeZones(ecsapi.CreateDescribeZonesRequest()))(t).Zones.Zone), 2)
	available := testkit.Must(a.slb.DescribeAvailableResource(slbapi.CreateDescribeAvailableResourceRequest()))(t).AvailableResources.AvailableResource
	wantEqual(t, "pairs", len(available), 2)
}

func TestHealthStatus(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), 80)
	health := func() string {
		r := slbapi.CreateDescribeHealthStatusRequest()
		r.LoadBalancerId = lb
		return testkit.Must(a.slb.DescribeHealthStatus(r))(t).BackendServers.BackendServer[0].ServerHealthStatus
	}
	wantEqual(t, "stopped listener", health(), "unavailable")
	testkit.Must(0, a.startListener(lb, 80))(t)
	wantEqual(t, "running", health(), "normal")
	a.put("i-1", emulator.InstanceSpec{Status: "Stopped"})
	wantEqual(t, "stopped machine", health(), "abnormal")
}

func TestInstanceLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: time.Minute})
		run := ecsapi.CreateRunInstancesRequest()
		run.ImageId, run.InstanceType, run.VSwitchId, run.SecurityGroupId = "img", "ecs.g7.large", "vsw-b", "sg-1"
		run.Amount, run.InstanceName, run.ClientToken = requests.NewInteger(2), "worker", "token"
		ids := testkit.Must(a.ecs.RunInstances(run))(t).InstanceIdSets.InstanceIdSet
		wantEqual(t, "the token gives the same instances", testkit.Must(a.ecs.RunInstances(run))(t).InstanceIdSets.InstanceIdSet, ids)
		status := func() string { return a.Instances()[0].Status }
		wantEqual(t, "new", []any{len(a.Instances()), status(), a.Instances()[0].ZoneID}, []any{2, "Pending", "cn-hangzhou-b"})
		stop := ecsapi.CreateStopInstanceRequest()
		stop.InstanceId = ids[0]
		_, err := a.ecs.StopInstance(stop)
		wantCode(t, err, "IncorrectInstanceStatus", 403)
		time.Sleep(time.Minute)
		wantEqual(t, "settled", status(), "Running")
		testkit.Must(a.ecs.StopInstance(stop))(t)
		wantEqual(t, "stop", status(), "Stopping")
		time.Sleep(time.Minute)
		start := ecsapi.CreateStartInstanceRequest()
		start.InstanceId = ids[0]
		testkit.Must(a.ecs.StartInstance(start))(t)
		wantEqual(t, "start", status(), "Starting")
		time.Sleep(time.Minute)
		remove := ecsapi.CreateDeleteInstanceRequest()
		remove.InstanceId = ids[0]
		_, err = a.ecs.DeleteInstance(remove)
		wantCode(t, err, "IncorrectInstanceStatus", 403)
		remove.Force = requests.NewBoolean(true)
		testkit.Must(a.ecs.DeleteInstance(remove))(t)
		_, err = a.ecs.DeleteInstance(remove)
		wantCode(t, err, "InvalidInstanceId.NotFound", 404)
		dry := ecsapi.CreateRunInstancesRequest()
		dry.ImageId, dry.InstanceType, dry.VSwitchId, dry.SecurityGroupId, dry.DryRun = "img", "ecs.g7.large", "vsw-b", "sg-1", requests.NewBoolean(true)
		_, err = a.ecs.RunInstances(dry)
		wantCode(t, err, "DryRunOperation", 400)
	})
}

func TestVSwitchAddresses(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{PrivateIP: "10.1.0.9"})
	get := vpcapi.CreateDescribeVSwitchAttributesRequest()
	get.VSwitchId = "vsw-a"
	wantEqual(t, "cidr", testkit.Must(a.vpc.DescribeVSwitchAttributes(get))(t).CidrBlock, "10.1.0.0/16")
	for ip, want := range map[string]bool{"10.1.0.9": false, "10.1.0.10": true, "10.1.0.0": false, "10.1.255.253": false, "10.1.255.252": true,
		"10.2.0.1": false} {
		r := vpcapi.CreateCheckCanAllocateVpcPrivateIpAddressRequest()
		r.VSwitchId, r.PrivateIpAddress = "vsw-a", ip
		wantEqual(t, ip, testkit.Must(a.vpc.CheckCanAllocateVpcPrivateIpAddress(r))(t).CanAllocate, want)
	}
}

func TestRouteTables(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	create := vpcapi.CreateCreateRouteTableRequest()
	create.VpcId, create.RouteTableName = "vpc-emulator", "custom"
	id := testkit.Must(a.vpc.CreateRouteTable(create))(t).RouteTableId
	for range 8 {
		testkit.Must(a.vpc.CreateRouteTable(create))(t)
	}
	_, err := a.vpc.CreateRouteTable(create)
	wantCode(t, err, "QuotaExceeded.RouteTable", 400)
	remove := vpcapi.CreateDeleteRouteTableRequest()
	remove.RouteTableId = table
	_, err = a.vpc.DeleteRouteTable(remove)
	wantCode(t, err, "IncorrectRouteTableType", 400)
	remove.RouteTableId = id
	testkit.Must(a.vpc.DeleteRouteTable(remove))(t)
	_, err = a.vpc.DeleteRouteTable(remove)
	wantCode(t, err, "InvalidRouteTableId.NotFound", 404)
}

func TestEIPs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: time.Second})
		lb := a.newLB()
		made := testkit.Must(a.vpc.AllocateEipAddress(vpcapi.CreateAllocateEipAddressRequest()))(t)
		bind := vpcapi.CreateAssociateEipAddressRequest()
		bind.AllocationId, bind.InstanceId, bind.InstanceType = made.AllocationId, lb, "SlbInstance"
		testkit.Must(a.vpc.AssociateEipAddress(bind))(t)
		_, err := a.vpc.AssociateEipAddress(bind)
		wantCode(t, err, "IncorrectEipStatus", 400)
		time.Sleep(time.Second)
		list := vpcapi.CreateDescribeEipAddressesRequest()
		list.AssociatedInstanceType, list.AssociatedInstanceId = "SlbInstance", lb
		got := testkit.Must(a.vpc.DescribeEipAddresses(list))(t).EipAddresses.EipAddress
		wantEqual(t, "bound", []any{len(got), got[0].IpAddress, got[0].Status, got[0].InstanceId}, []any{1, made.EipAddress, "InUse", lb})
		release := vpcapi.CreateReleaseEipAddressRequest()
		release.AllocationId = made.AllocationId
		_, err = a.vpc.ReleaseEipAddress(release)
		wantCode(t, err, "IncorrectEipStatus", 400)
		unbind := vpcapi.CreateUnassociateEipAddressRequest()
		unbind.AllocationId, unbind.InstanceId = made.AllocationId, lb
		testkit.Must(a.vpc.UnassociateEipAddress(unbind))(t)
		time.Sleep(time.Second)
		testkit.Must(a.vpc.ReleaseEipAddress(release))(t)
		time.Sleep(time.Second)
		_, err = a.vpc.ReleaseEipAddress(release)
		wantCode(t, err, "InvalidAllocationId.NotFound", 404)
	})
}
