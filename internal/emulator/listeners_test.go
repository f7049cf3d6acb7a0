package emulator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// newGroup creates a vServer group with backend servers in the wire's form and returns its id.
func (a *account) newGroup(lb, backends string) string {
	a.t.Helper()
	r := slbapi.CreateCreateVServerGroupRequest()
	r.LoadBalancerId, r.VServerGroupName, r.BackendServers = lb, "group", backends
	return testkit.Must(a.slb.CreateVServerGroup(r))(a.t).VServerGroupId
}

// newTCP creates a TCP listener, stopped.
func (a *account) newTCP(lb, group string, port int) {
	a.t.Helper()
	_, err := a.createTCP(lb, group, port)
	testkit.Must(0, err)(a.t)
}

func (a *account) createTCP(lb, group string, port int) (*slbapi.CreateLoadBalancerTCPListenerResponse, error) {
	r := slbapi.CreateCreateLoadBalancerTCPListenerRequest()
	r.LoadBalancerId, r.ListenerPort, r.VServerGroupId = lb, requests.NewInteger(port), group
	return a.slb.CreateLoadBalancerTCPListener(r)
}

func (a *account) startListener(lb string, port int) error {
	r := slbapi.CreateStartLoadBalancerListenerRequest()
	r.LoadBalancerId, r.ListenerPort, r.ListenerProtocol = lb, requests.NewInteger(port), "tcp"
	_, err := a.slb.StartLoadBalancerListener(r)
	return err
}

func (a *account) stopListener(lb string, port int) error {
	r := slbapi.CreateStopLoadBalancerListenerRequest()
	r.LoadBalancerId, r.ListenerPort, r.ListenerProtocol = lb, requests.NewInteger(port), "tcp"
	_, err := a.slb.StopLoadBalancerListener(r)
	return err
}

func (a *account) deleteListener(lb string, port int, protocol string) error {
	r := slbapi.CreateDeleteLoadBalancerListenerRequest()
	r.LoadBalancerId, r.ListenerPort, r.ListenerProtocol = lb, requests.NewInteger(port), protocol
	_, err := a.slb.DeleteLoadBalancerListener(r)
	return err
}

func (a *account) listeners(lb string) []slbapi.ListenerInDescribeLoadBalancerListeners {
	a.t.Helper()
	r := slbapi.CreateDescribeLoadBalancerListenersRequest()
	r.LoadBalancerId = &[]string{lb}
	return testkit.Must(a.slb.DescribeLoadBalancerListeners(r))(a.t).Listeners
}

func TestTCPListener(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	lb := a.newLB()
	group := a.newGroup(lb, "")
	create := slbapi.CreateCreateLoadBalancerTCPListenerRequest()
	create.LoadBalancerId, create.ListenerPort, create.VServerGroupId = lb, requests.NewInteger(80), group
	create.HealthCheckInterval, create.ProxyProtocolV2Enabled = requests.NewInteger(7), requests.NewBoolean(true)
	testkit.Must(a.slb.CreateLoadBalancerTCPListener(create))(t)

	l := a.listeners(lb)[0]
	wantEqual(t, "created",
		[]any{l.Status, l.ListenerProtocol, l.ListenerPort, l.VServerGroupId, l.Bandwidth, l.Scheduler, l.TCPListenerConfig.HealthCheckInterval,
			l.TCPListenerConfig.HealthCheck, l.TCPListenerConfig.ProxyProtocolV2Enabled, l.TCPListenerConfig.EstablishedTimeout},
		[]any{"stopped", "tcp", 80, group, -1, "wrr", 7, "on", "true", 900})

	set := slbapi.CreateSetLoadBalancerTCPListenerAttributeRequest()
	set.LoadBalancerId, set.ListenerPort = lb, requests.NewInteger(80)
	set.HealthCheckInterval, set.PersistenceTimeout, set.Scheduler, set.Description = requests.NewInteger(9), requests.NewInteger(100), "rr", "web"
	testkit.Must(a.slb.SetLoadBalancerTCPListenerAttribute(set))(t)
	get := slbapi.CreateDescribeLoadBalancerTCPListenerAttributeRequest()
	get.LoadBalancerId, get.ListenerPort = lb, requests.NewInteger(80)
	flat := testkit.Must(a.slb.DescribeLoadBalancerTCPListenerAttribute(get))(t)
	wantEqual(t, "after set",
		[]any{flat.HealthCheckInterval, flat.PersistenceTimeout, flat.Scheduler, flat.Description, flat.VServerGroupId,
			flat.ProxyProtocolV2Enabled, flat.HealthyThreshold},
		[]any{9, 100, "rr", "web", group, true, 3})

	testkit.Must(0, a.startListener(lb, 80))(t)
	wantEqual(t, "started", a.listeners(lb)[0].Status, "running")
	wantCode(t, a.startListener(lb, 80), "OperationFailed.ListenerStatusNotSupport", 400)
	testkit.Must(0, a.stopListener(lb, 80))(t)
	wantEqual(t, "stopped", a.listeners(lb)[0].Status, "stopped")
	testkit.Must(0, a.deleteListener(lb, 80, "tcp"))(t)
	wantCode(t, a.deleteListener(lb, 80, "tcp"), "ListenerNotFound", 404)
}

func TestListenersShareAPort(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	lb := a.newLB()
	group := a.newGroup(lb, "")
	a.newTCP(lb, group, 53)
	udp := slbapi.CreateCreateLoadBalancerUDPListenerRequest()
	udp.LoadBalancerId, udp.ListenerPort, udp.VServerGroupId = lb, requests.NewInteger(53), group
	udp.HealthCheckReq, udp.HealthCheckExp = "ping", "pong"
	testkit.Must(a.slb.CreateLoadBalancerUDPListener(udp))(t)
	_, err := a.slb.CreateLoadBalancerUDPListener(udp)
	wantCode(t, err, "ListenerAlreadyExists", 400)
	http := slbapi.CreateCreateLoadBalancerHTTPListenerRequest()
	http.LoadBalancerId, http.ListenerPort, http.VServerGroupId = lb, requests.NewInteger(53), group
	_, err = a.slb.CreateLoadBalancerHTTPListener(http)
	wantCode(t, err, "ListenerAlreadyExists", 400)
	wantCode(t, a.deleteListener(lb, 53, ""), "MissingParameter", 400)

	set := slbapi.CreateSetLoadBalancerUDPListenerAttributeRequest()
	set.LoadBalancerId, set.ListenerPort, set.HealthCheckReq = lb, requests.NewInteger(53), "ping2"
	testkit.Must(a.slb.SetLoadBalancerUDPListenerAttribute(set))(t)
	get := slbapi.CreateDescribeLoadBalancerUDPListenerAttributeRequest()
	get.LoadBalancerId, get.ListenerPort = lb, requests.NewInteger(53)
	flat := testkit.Must(a.slb.DescribeLoadBalancerUDPListenerAttribute(get))(t)
	wantEqual(t, "udp", []string{flat.HealthCheckReq, flat.HealthCheckExp, flat.Status}, []string{"ping2", "pong", "stopped"})
	testkit.Must(0, a.deleteListener(lb, 53, "udp"))(t)
	testkit.Must(0, a.deleteListener(lb, 53, "tcp"))(t)
}

func TestHTTPListeners(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	lb := a.newLB()
	group := a.newGroup(lb, "")
	plain := slbapi.CreateCreateLoadBalancerHTTPListenerRequest()
	plain.LoadBalancerId, plain.ListenerPort, plain.VServerGroupId = lb, requests.NewInteger(80), group
	plain.StickySession = "on"
	_, err := a.slb.CreateLoadBalancerHTTPListener(plain)
	wantCode(t, err, "MissingParameter", 400)
	plain.StickySessionType, plain.CookieTimeout = "insert", requests.NewInteger(60)
	testkit.Must(a.slb.CreateLoadBalancerHTTPListener(plain))(t)
	redirect := slbapi.CreateCreateLoadBalancerHTTPListenerRequest()
	redirect.LoadBalancerId, redirect.ListenerPort, redirect.ListenerForward = lb, requests.NewInteger(81), "on"
	_, err = a.slb.CreateLoadBalancerHTTPListener(redirect)
	wantCode(t, err, "MissingParameter", 400)
	redirect.ForwardPort = requests.NewInteger(443)
	testkit.Must(a.slb.CreateLoadBalancerHTTPListener(redirect))(t)

	set := slbapi.CreateSetLoadBalancerHTTPListenerAttributeRequest()
	set.LoadBalancerId, set.ListenerPort, set.RequestTimeout, set.HealthCheck = lb, requests.NewInteger(80), requests.NewInteger(9), "on"
	testkit.Must(a.slb.SetLoadBalancerHTTPListenerAttribute(set))(t)
	get := slbapi.CreateDescribeLoadBalancerHTTPListenerAttributeRequest()
	get.LoadBalancerId, get.ListenerPort = lb, requests.NewInteger(80)
	flat := testkit.Must(a.slb.DescribeLoadBalancerHTTPListenerAttribute(get))(t)
	wantEqual(t, "http",
		[]any{flat.ListenerForward, flat.RequestTimeout, flat.HealthCheck, flat.CookieTimeout, flat.IdleTimeout, flat.XForwardedFor},
		[]any{"off", 9, "on", 60, 15, "on"})

	secure := slbapi.CreateCreateLoadBalancerHTTPSListenerRequest()
	secure.LoadBalancerId, secure.ListenerPort, secure.VServerGroupId = lb, requests.NewInteger(443), group
	_, err = a.slb.CreateLoadBalancerHTTPSListener(secure)
	wantCode(t, err, "MissingParameter", 400)
	secure.ServerCertificateId = "cert-none"
	_, err = a.slb.CreateLoadBalancerHTTPSListener(secure)
	wantCode(t, err, "CertificateNotExist", 400)
	cert := testkit.Must(a.upload(newCertificate(t, "example.test")))(t).ServerCertificateId
	secure.ServerCertificateId = cert
	testkit.Must(a.slb.CreateLoadBalancerHTTPSListener(secure))(t)
	policy := slbapi.CreateSetLoadBalancerHTTPSListenerAttributeRequest()
	policy.LoadBalancerId, policy.ListenerPort, policy.TLSCipherPolicy = lb, requests.NewInteger(443), "tls_cipher_policy_1_2"
	testkit.Must(a.slb.SetLoadBalancerHTTPSListenerAttribute(policy))(t)
	getSecure := slbapi.CreateDescribeLoadBalancerHTTPSListenerAttributeRequest()
	getSecure.LoadBalancerId, getSecure.ListenerPort = lb, requests.NewInteger(443)
	got := testkit.Must(a.slb.DescribeLoadBalancerHTTPSListenerAttribute(getSecure))(t)
	wantEqual(t, "https", []string{got.ServerCertificateId, got.TLSCipherPolicy, got.EnableHttp2},
		[]string{cert, "tls_cipher_policy_1_2", "on"})
}

func TestListenerRefusals(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	lb, other := a.newLB(), a.newLB()
	group, foreign := a.newGroup(lb, ""), a.newGroup(other, "")
	_, err := a.createTCP("lb-none", group, 80)
	wantCode(t, err, "InvalidLoadBalancerId.NotFound", 404)
	_, err = a.createTCP(lb, foreign, 80)
	wantCode(t, err, "ResourceNotFound.VServerGroup", 400)
	_, err = a.createTCP(lb, group, 70000)
	wantCode(t, err, "InvalidParameter", 400)
	_, err = a.createTCP(lb, "", 80)
	wantCode(t, err, "MissingParameter", 400)
	for port := range 50 {
		a.newTCP(lb, group, port+1)
	}
	_, err = a.createTCP(lb, group, 80)
	wantCode(t, err, "ListenerNumberOverLimit", 400)
}

func TestListenerSettles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: 10 * time.Second})
		lb := a.newLB()
		group := a.newGroup(lb, "")
		a.newTCP(lb, group, 80)
		_, err := a.createTCP(lb, group, 81)
		wantCode(t, err, "ListenerProcessing", 400)
		time.Sleep(11 * time.Second)
		testkit.Must(0, a.startListener(lb, 80))(t)
		wantEqual(t, "starting", a.listeners(lb)[0].Status, "starting")
		wantCode(t, a.deleteListener(lb, 80, "tcp"), "OperationFailed.ListenerStatusNotSupport", 400)
		changed := a.Changed()
		time.Sleep(11 * time.Second)
		select {
		case <-changed:
		default:
			t.Error("no event says that the listener runs")
		}
		wantEqual(t, "running", a.listeners(lb)[0].Status, "running")
		testkit.Must(0, a.stopListener(lb, 80))(t)
		wantCode(t, a.deleteListener(lb, 80, "tcp"), "ServiceIsStopping", 409)
		time.Sleep(11 * time.Second)
		testkit.Must(0, a.deleteListener(lb, 80, "tcp"))(t)
		wantCode(t, a.deleteGroup(group), "RspoolVipExist", 400)
		time.Sleep(11 * time.Second)
		testkit.Must(0, a.deleteGroup(group))(t)
	})
}
