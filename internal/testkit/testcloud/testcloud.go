// Package testcloud is an emulated account of Alibaba Cloud with the manager's real client of it, for tests. It stands beside the
// emulator's own test package because the emulator may not know the client.
package testcloud

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Account is an emulated account and a client with all its permissions. The client reaches the emulator within the process, so
// that it also works in a synctest bubble.
type Account struct {
	*emulatortest.Cloud
	Client *alicloud.Client
	tb     testing.TB
}

// New starts an emulator that ends with its test.
func New(tb testing.TB, opts emulator.Options) *Account {
	tb.Helper()
	a := &Account{Cloud: emulatortest.New(tb, opts), tb: tb}
	a.Client = a.NewClient()
	return a
}

// NewClient returns one more client. Without changes it has all permissions and reaches the emulator within the process.
func (a *Account) NewClient(change ...func(*alicloud.Options)) *alicloud.Client {
	a.tb.Helper()
	const host = "emulator.test"
	options := alicloud.Options{
		Region: emulatortest.Region, Credentials: RootKey(), Transport: a.Transport(),
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: host, NLB: host, VPC: host, ECS: host, Quotas: host},
	}
	for _, f := range change {
		f(&options)
	}
	client, err := alicloud.New(options)
	if err != nil {
		a.tb.Fatal(err)
	}
	return client
}

// ClientOf returns a client with another access key.
func (a *Account) ClientOf(id, secret string) *alicloud.Client {
	a.tb.Helper()
	return a.NewClient(func(o *alicloud.Options) {
		o.Credentials = alicloud.StaticCredentials{AccessKeyID: id, AccessKeySecret: secret}
	})
}

// RootKey is the access key of the built-in configuration, which has all permissions.
func RootKey() alicloud.StaticCredentials {
	return alicloud.StaticCredentials{AccessKeyID: emulatortest.AccessKeyID, AccessKeySecret: emulatortest.AccessKeySecret}
}

// Routes returns the custom entries of a route table as a map from CIDR to instance.
func (a *Account) Routes(table string) map[string]string {
	a.tb.Helper()
	var state struct {
		RouteTables []struct {
			RouteTableId string //nolint:revive // wire name
			RouteEntries []struct {
				DestinationCidrBlock, Type string
				NextHops                   struct{ NextHop []struct{ NextHopId string } } //nolint:revive // wire name
			}
		}
	}
	a.Read("state", &state)
	found := map[string]string{}
	for _, t := range state.RouteTables {
		for _, e := range t.RouteEntries {
			if t.RouteTableId == table && e.Type == alicloud.RouteTypeCustom {
				found[e.DestinationCidrBlock] = e.NextHops.NextHop[0].NextHopId
			}
		}
	}
	return found
}
