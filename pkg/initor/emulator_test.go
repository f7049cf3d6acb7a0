package initor

import (
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// startCloud runs an emulator with one instance, i-1 at 10.1.0.11, and a second one. The access key "blind" may not see them.
func startCloud(t *testing.T, spec emulator.InstanceSpec) string {
	t.Helper()
	config := cloud.DefaultConfig()
	config.AccessKeys = append(config.AccessKeys, cloud.AccessKeyConfig{ID: "blind", Secret: "blind-secret", Permissions: []string{"slb:*"}})
	emu := emulatortest.New(t, emulator.Options{Config: config})
	spec.PrivateIP = "10.1.0.11"
	for id, spec := range map[string]emulator.InstanceSpec{"i-1": spec, "i-2": {PrivateIP: "10.1.0.12"}} {
		if _, err := emu.PutInstance(id, spec); err != nil {
			t.Fatal(err)
		}
	}
	return emu.URL()
}

func ecsSource(t *testing.T, url, key, vpcID string) *ECSSource {
	t.Helper()
	client, err := alicloud.New(alicloud.Options{
		Region:      "cn-hangzhou",
		Credentials: alicloud.StaticCredentials{AccessKeyID: key, AccessKeySecret: key + "-secret"},
		Endpoints:   alicloud.Endpoints{ECS: url, PlainHTTP: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &ECSSource{API: client, VPCID: vpcID}
}

func TestMetadataOfTheEmulator(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec       emulator.InstanceSpec
		instance   string
		want       node.ProviderID
		wantNotECS bool
	}{
		"plain or token":   {instance: "i-1", want: testID},
		"tokens only":      {spec: emulator.InstanceSpec{HTTPTokens: "required"}, instance: "i-1", want: testID},
		"switched off":     {spec: emulator.InstanceSpec{HTTPEndpoint: "disabled"}, instance: "i-1", wantNotECS: true},
		"no such instance": {instance: "i-3", wantNotECS: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metadata := alicloud.NewMetadata(startCloud(t, test.spec) + "/metadata/" + test.instance)
			got, err := NewMetadataSource(metadata, fstest.MapFS{}).Identify(t.Context(), nodeWithID(""))
			if got != test.want || errors.Is(err, ErrNotECS) != test.wantNotECS || (err != nil) != test.wantNotECS {
				t.Errorf("Identify = %+v, %v, want %+v, not ECS %t", got, err, test.want, test.wantNotECS)
			}
		})
	}
}

func TestECSByAddress(t *testing.T) {
	t.Parallel()
	const vpcID = "vpc-emulator"
	for name, test := range map[string]struct {
		addresses  []string
		provided   string
		key, vpcID string
		want       node.ProviderID
		wantErr    bool
		wantNotECS bool
	}{
		"by InternalIP": {addresses: []string{"10.1.0.11"}, key: "emulator", vpcID: vpcID, want: testID},
		"by --node-ip":  {provided: "10.1.0.11", key: "emulator", vpcID: vpcID, want: testID},
		"by both, and IPv6": {addresses: []string{"fd00::1", "10.1.0.11"}, provided: "10.1.0.11", key: "emulator", vpcID: vpcID,
			want: testID},
		"elsewhere":                 {addresses: []string{"192.168.0.1"}, key: "emulator", vpcID: vpcID, wantErr: true, wantNotECS: true},
		"no address":                {key: "emulator", vpcID: vpcID, wantErr: true},
		"of two instances":          {addresses: []string{"10.1.0.11", "10.1.0.12"}, key: "emulator", vpcID: vpcID, wantErr: true},
		"key sees nothing":          {addresses: []string{"10.1.0.11"}, key: "blind", vpcID: vpcID, wantErr: true},
		"no such key":               {addresses: []string{"10.1.0.11"}, key: "wrong", vpcID: vpcID, wantErr: true},
		"no instance in such a VPC": {addresses: []string{"10.1.0.11"}, key: "emulator", vpcID: "vpc-other", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := ecsSource(t, startCloud(t, emulator.InstanceSpec{}), test.key, test.vpcID)
			n := nodeWithID("")
			n.Annotations = map[string]string{cloudproviderapi.AnnotationAlphaProvidedIPAddr: test.provided}
			for _, address := range test.addresses {
				n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
			}
			got, err := source.Source().Identify(t.Context(), n)
			if got != test.want || (err != nil) != test.wantErr || errors.Is(err, ErrNotECS) != test.wantNotECS {
				t.Errorf("Identify = %+v, %v, want %+v, an error %t, not ECS %t", got, err, test.want, test.wantErr, test.wantNotECS)
			}
		})
	}
}

func TestRunFallsBackToECS(t *testing.T) {
	t.Parallel()
	url := startCloud(t, emulator.InstanceSpec{HTTPEndpoint: "disabled"})
	n := nodeWithID("")
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.11"}}
	onECS := fstest.MapFS{productFile: {Data: []byte(ecsProduct)}}
	result, err := Run(t.Context(), Options{
		Nodes: newCluster(n).nodes(), NodeName: "node-1", Sources: []Source{
			NewMetadataSource(alicloud.NewMetadata(url+"/metadata/i-1"), onECS), ecsSource(t, url, "emulator", "vpc-emulator").Source(),
		},
	})
	want := Result{Outcome: OutcomeSet, ProviderID: "cn-hangzhou.i-1", Source: "ECS"}
	if err != nil || result != want {
		t.Errorf("Run = %+v, %v, want %+v", result, err, want)
	}
}

// TestUnknownAddressCostsOneCall: a node whose address no instance has is asked for again and again. That costs one call each time, and
// once another one for a page of the VPC's instances, however many it has.
func TestUnknownAddressCostsOneCall(t *testing.T) {
	t.Parallel()
	account := testcloud.New(t, emulator.Options{})
	for i := range 250 {
		if _, err := account.PutInstance(fmt.Sprintf("i-%d", i), emulator.InstanceSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	source := &ECSSource{API: account.Client, VPCID: emulatortest.VPC}
	n := nodeWithID("")
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.0.1"}}
	const rounds = 5
	for range rounds {
		if _, err := source.Source().Identify(t.Context(), n); !errors.Is(err, ErrNotECS) {
			t.Errorf("Identify: %v, want %v", err, ErrNotECS)
		}
	}
	if calls := account.Count(0, "DescribeInstances"); calls != rounds+1 {
		t.Errorf("%d calls in %d rounds, want %d", calls, rounds, rounds+1)
	}
}
