package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

const (
	ownAccount = "1000000000000000"
	rangeOfSix = "2001:db8:1::/64"
)

// Emulated starts an emulator with everything that the scenarios need, and the options to run them in this process. Flips are settings that
// flip facts, as bodies of PUT /_emulator/settings.
//
//nolint:forbidigo // settings of an emulator that just started: nothing waits
func Emulated(settle time.Duration, flips ...string) (*emulator.Emulator, Options, error) {
	config, err := emulatedConfig()
	if err != nil {
		return nil, Options{}, err
	}
	own := newNetwork()
	e, err := emulator.New(emulator.Options{Config: config, Settle: settle, Fabric: true, Network: own})
	if err != nil {
		return nil, Options{}, fmt.Errorf("start the emulator: %w", err)
	}
	o := Options{
		Key: Key{ID: "emulator", Secret: "emulator-secret"}, Endpoint: "emulator.test", PlainHTTP: true, Transport: inProcess{e.Handler()},
		Poll: max(settle/2, time.Millisecond), Tag: "run", network: own,
	}
	own.resolve = e.Fabric().Resolve
	o.Admin = o.AdminOver(o.Transport)
	o.Environment = Environment{
		Region: config.Region, Account: ownAccount, VPC: "vpc-conformance", RouteTable: "vtb-conformance", VSwitches: [2]string{"vsw-a", "vsw-b"},
		Zones: [2]string{"cn-hangzhou-a", "cn-hangzhou-b"}, Instances: [2]string{"i-conformance-a", "i-conformance-b"}, Address: "10.1.0.10",
		SecurityGroup: "sg-emulator", Image: "aliyun_3", InstanceType: "ecs.t6-c1m1.large",
		Role: "acs:ram::" + ownAccount + ":role/emulator-role", Provider: "acs:ram::" + ownAccount + ":oidc-provider/emulator",
		Disabled: Key{ID: "disabled", Secret: "disabled-secret"}, Restricted: Key{ID: "restricted", Secret: "restricted-secret"},
		OtherInstance: "i-other",
	}
	for _, i := range e.Instances() {
		if i.ID == o.Environment.Instances[0] {
			o.Environment.Interface = i.NetworkInterfaceID
		}
	}
	for _, body := range flips {
		if _, err := o.Admin(context.Background(), http.MethodPut, "/_emulator/settings", body); err != nil {
			return nil, o, errors.Join(err, e.Close())
		}
	}
	return e, o, nil
}

func emulatedConfig() (*cloud.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	const vpc = "vpc-conformance"
	c := &cloud.Config{
		Region: "cn-hangzhou", AccountID: ownAccount,
		VPCs: []cloud.VPCConfig{{ID: vpc, CIDR: "10.0.0.0/8"}, {ID: "vpc-other", CIDR: "192.168.0.0/16"},
			{ID: "vpc-six", CIDR: "172.16.0.0/16", IPv6CIDR: "2001:db8:1::/56"}},
		VSwitches: []cloud.VSwitchConfig{
			{ID: "vsw-a", VPCID: vpc, Zone: "cn-hangzhou-a", CIDR: "10.1.0.0/16"},
			{ID: "vsw-b", VPCID: vpc, Zone: "cn-hangzhou-b", CIDR: "10.2.0.0/16"},
			{ID: "vsw-six-a", VPCID: "vpc-six", Zone: "cn-hangzhou-a", CIDR: "172.16.1.0/24", IPv6CIDR: rangeOfSix},
			{ID: "vsw-six-b", VPCID: "vpc-six", Zone: "cn-hangzhou-b", CIDR: "172.16.2.0/24", IPv6CIDR: "2001:db8:1:1::/64"},
			{ID: "vsw-c", VPCID: vpc, Zone: "cn-hangzhou-c", CIDR: "10.6.0.0/16"},
			{ID: "vsw-a2", VPCID: vpc, Zone: "cn-hangzhou-a", CIDR: "10.4.0.0/16"},
			{ID: "vsw-tiny", VPCID: vpc, Zone: "cn-hangzhou-b", CIDR: "10.5.0.0/29"},
			{ID: "vsw-other", VPCID: "vpc-other", Zone: "cn-hangzhou-a", CIDR: "192.168.0.0/24"},
		},
		RouteTables: []cloud.RouteTableConfig{{ID: "vtb-conformance", VPCID: vpc}, {ID: "vtb-other", VPCID: "vpc-other"},
			{ID: "vtb-six", VPCID: "vpc-six"}},
		Instances: []cloud.InstanceConfig{
			{ID: "i-conformance-a", VSwitchID: "vsw-a", PrivateIP: "10.1.0.10"}, {ID: "i-conformance-b", VSwitchID: "vsw-a", PrivateIP: "10.1.0.11"},
			{ID: "i-other", VSwitchID: "vsw-other"}, {ID: "i-six", VSwitchID: "vsw-six-a"},
		},
		AccessKeys: []cloud.AccessKeyConfig{
			{ID: "emulator", Secret: "emulator-secret"},
			{ID: "restricted", Secret: "restricted-secret", Permissions: []string{"sts:GetCallerIdentity"}},
			{ID: "disabled", Secret: "disabled-secret", Disabled: true},
		},
		Roles:             []cloud.RoleConfig{{Name: "emulator-role"}},
		BandwidthPackages: []string{"cbwp-conformance"},
		OIDCProviders: []cloud.OIDCConfig{
			{Name: "emulator", ClientIDs: []string{"sts.aliyuncs.com"}},
			{Name: "signed", ClientIDs: []string{"sts.aliyuncs.com"}, Keys: []string{public}},
		},
	}
	// The small vSwitch has no free address.
	for i := range 4 {
		c.Instances = append(c.Instances, cloud.InstanceConfig{ID: fmt.Sprintf("i-tiny-%d", i), VSwitchID: "vsw-tiny"})
	}
	return c, nil
}

// AdminOver calls the emulator's own API at the endpoint.
func (o Options) AdminOver(transport http.RoundTripper) func(ctx context.Context, method, path, body string) ([]byte, error) {
	client := &caller{http: &http.Client{Transport: transport, Timeout: time.Minute}}
	return func(ctx context.Context, method, path, body string) ([]byte, error) {
		target := strings.ToLower(o.scheme()) + "://" + o.Endpoint + path
		request, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("make a request: %w", err)
		}
		return client.admin(request)
	}
}

// inProcess carries requests to a handler of the same process, as if from this host.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	if request.Body == nil {
		request.Body = http.NoBody
	}
	request.RemoteAddr = "127.0.0.1:1"
	if strings.HasPrefix(request.URL.Path, "/_emulator/") {
		request.Host = "localhost" // calls of the OpenAPI are signed with theirs
	}
	t.handler.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}
