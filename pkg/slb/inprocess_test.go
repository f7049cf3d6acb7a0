package slb

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// processCloud is a cloud without limits of rates, for tests whose time is their own: calls reach it without any network.
func processCloud(tb testing.TB) *emulatortest.Cloud {
	tb.Helper()
	config := cloud.DefaultConfig()
	config.Quotas = cloud.Limits{LoadBalancers: 10_000, LBsPerInstance: 10_000}
	config.Certificates = []cloud.CertificateConfig{{ID: testCertificate}}
	return emulatortest.New(tb, emulator.Options{Config: config})
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
