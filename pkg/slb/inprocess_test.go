package slb

import (
	"net/http"
	"testing"

	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// processCloud is a cloud without limits of rates, for tests whose time is their own: calls reach it without any network.
func processCloud(tb testing.TB) *emulatortest.Cloud {
	tb.Helper()
	config := cloud.DefaultConfig()
	config.Quotas = cloud.Limits{LoadBalancers: 10_000, LBsPerInstance: 10_000}
	config.Certificates = []cloud.CertificateConfig{{ID: testCertificate}}
	return emulatortest.New(tb, emulator.Options{Config: config})
}

// processWorld makes a world in the time of a synctest bubble: its calls reach the cloud through next, without any network.
func processWorld(tb testing.TB, e *emulatortest.Cloud, next http.RoundTripper) *world {
	tb.Helper()
	client, err := alicloud.New(alicloud.Options{
		Region: testRegion, Credentials: testKey(), Transport: next,
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: "cloud", VPC: "cloud", ECS: "cloud"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{
		t: tb, emulator: e, kube: testkube.NewClientset(), api: client, transport: &mortal{}, events: make(chan string, 1000),
		config: config.Config{ClusterID: testCluster, VPCID: emulatortest.VPC, VSwitchIDs: []string{"vsw-a"}, Quotas: roomy()},
	}
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	w.Reconciler = service.NewReconciler(w.options())
	return w
}

// processClient makes a client of a cloud without a network between.
func processClient(tb testing.TB, e *emulatortest.Cloud) *alicloud.Client {
	tb.Helper()
	client, err := alicloud.New(alicloud.Options{
		Region: testRegion, Credentials: testKey(), Transport: e.Transport(),
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: "cloud", VPC: "cloud", ECS: "cloud"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return client
}
