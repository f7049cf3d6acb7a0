package provider

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

func TestOrphansText(t *testing.T) {
	t.Parallel()
	none := Orphans{ClusterID: "c1", Orphans: []driver.Orphan{}}
	if diff := cmp.Diff("Every resource of cluster c1 has its Service.\n", none.String()); diff != "" {
		t.Errorf("text of none (-want +got):\n%s", diff)
	}
	unread := Orphans{ClusterID: "c1", Unread: []string{"read all NLBs: forbidden"}}
	if diff := cmp.Diff("Every resource of cluster c1 that could be read has its Service.\n! Could not be read, so there may be more: read all NLBs: forbidden\n", unread.String()); diff != "" {
		t.Errorf("text where something was not read (-want +got):\n%s", diff)
	}
	if err := unread.Incomplete(); err == nil || none.Incomplete() != nil {
		t.Errorf("incomplete: %v and %v", err, none.Incomplete())
	}
	one := Orphans{ClusterID: "c1", Earlier: []string{"clusterid"}, Ambiguous: true, region: "cn-hangzhou", Orphans: []driver.Orphan{
		{Kind: driver.OrphanAccessList, ID: "acl-1", Reason: "gone", Delete: []string{"aliyun slb DeleteAccessControlList --AclId acl-1"}},
		{Kind: driver.OrphanLoadBalancer, ID: "lb-1", Name: "a1", Reason: "gone", ClusterID: "clusterid",
			Delete: []string{"protection off", "aliyun slb DeleteLoadBalancer"}},
	}}
	want := `access control list acl-1: gone
load balancer lb-1 (a1): gone

To delete all of them:
  protection off --RegionId cn-hangzhou
  aliyun slb DeleteLoadBalancer --RegionId cn-hangzhou
  aliyun slb DeleteAccessControlList --AclId acl-1 --RegionId cn-hangzhou
! Every cluster without a configured clusterID is called clusterid: check which cluster owns them before you delete them.
`
	if diff := cmp.Diff(want, one.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	one.Orphans = one.Orphans[1:]
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	want = `{"clusterID":"c1","earlierClusterIDs":["clusterid"],"ambiguous":true,"orphans":[{"kind":"load balancer","id":"lb-1","name":"a1","reason":"gone",` +
		`"clusterID":"clusterid","delete":["protection off","aliyun slb DeleteLoadBalancer"]}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// TestOrphanedRoutes: route entries that another --cluster-cidr has left behind use up the quota for ever. They are listed with what
// deletes them.
func TestOrphanedRoutes(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	server.Put("i-1", `{"PrivateIpAddress": "10.1.0.9"}`)
	config := keys
	config.VPCID, config.VSwitchIDs, config.ClusterID = "vpc-emulator", []string{"vsw-a"}, "c-1"
	withCloud(t, server, config, Settings{}, func(ctx context.Context, cloud *Cloud) {
		old := []alicloud.NewRoute{{TableID: "vtb-emulator", CIDR: "10.99.0.0/24", InstanceID: "i-1", Description: "k8s/pod-cidr/c-1"}}
		for _, err := range testkit.Must(cloud.client.CreateRouteEntries(ctx, old))(t) {
			testkit.Check(t, err)
		}
		found := testkit.Must(cloud.Orphans(ctx, false))(t)
		want := []driver.Orphan{{
			Kind: driver.OrphanRouteEntry, ID: "10.99.0.0/24", In: "vtb-emulator", ClusterID: "c-1",
			Reason: "it is outside of --cluster-cidr [10.244.0.0/16]",
			Delete: []string{"aliyun vpc DeleteRouteEntry --RouteTableId vtb-emulator --DestinationCidrBlock 10.99.0.0/24 --NextHopId i-1"},
		}}
		if diff := cmp.Diff(want, found.Orphans); diff != "" {
			t.Errorf("orphans (-want +got):\n%s", diff)
		}
	})
}
