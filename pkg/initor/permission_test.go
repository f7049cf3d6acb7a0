package initor

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// initializerPolicy is the published RAM policy of this feature, without the actions given. The emulator takes an empty policy for one
// that allows everything.
func initializerPolicy(without ...string) []string {
	return append(alicloud.FeatureInitializer.Policy(without...), "sts:None")
}

// TestEveryPermissionMayBeMissing looks a node up by its address under the published policy, for every action of which
// there is a turn without it: the error names the action, the node is neither written nor taken for a machine elsewhere,
// and with the permission back it gets its provider ID.
func TestEveryPermissionMayBeMissing(t *testing.T) {
	t.Parallel()
	for _, action := range alicloud.ActionsOf(alicloud.FeatureInitializer) {
		t.Run(action.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playMissing(t, action) })
		})
	}
}

func playMissing(t *testing.T, action alicloud.Action) {
	t.Helper()
	account := emulatortest.New(t, emulator.Options{})
	permit := func(actions []string) {
		if !account.Permit(emulatortest.AccessKeyID, actions...) {
			t.Fatal("the emulator does not know the access key")
		}
	}
	if _, err := account.PutInstance("i-1", emulator.InstanceSpec{PrivateIP: "10.1.0.11"}); err != nil {
		t.Fatal(err)
	}
	client, err := alicloud.New(alicloud.Options{
		Region:      emulatortest.Region,
		Credentials: alicloud.StaticCredentials{AccessKeyID: emulatortest.AccessKeyID, AccessKeySecret: emulatortest.AccessKeySecret},
		Endpoints:   alicloud.Endpoints{ECS: "emulator.test", PlainHTTP: true},
		Transport:   account.Transport(),
	})
	if err != nil {
		t.Fatal(err)
	}
	source := &ECSSource{API: client, VPCID: emulatortest.VPC}
	n := nodeWithID("")
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.11"}}
	c := newCluster(n)

	permit(initializerPolicy(action.Name))
	checkRefused := func(what string, err error) {
		if err == nil || !strings.Contains(err.Error(), action.RAM()) || errors.Is(err, ErrNotECS) {
			t.Errorf("%s: %v, want an error that names %s", what, err, action.RAM())
		}
	}
	_, err = source.Lookup(t.Context(), []*corev1.Node{n})
	checkRefused("Lookup", err)
	_, err = runOn(t, c, source.Source(), Options{})
	checkRefused("Run", err)
	if stored := c.node(t).Spec.ProviderID; stored != "" || c.patches != 0 {
		t.Errorf("stored %q after %d patches, want no write", stored, c.patches)
	}

	permit(initializerPolicy())
	result, err := runOn(t, c, source.Source(), Options{})
	if err != nil || result.Outcome != OutcomeSet || c.node(t).Spec.ProviderID != testID.String() {
		t.Errorf("with the permission back: %+v, %v", result, err)
	}
}
