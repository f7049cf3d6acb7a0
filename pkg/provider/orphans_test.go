package provider

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

func TestOrphansText(t *testing.T) {
	t.Parallel()
	none := Orphans{ClusterID: "c1", Orphans: []service.Orphan{}}
	if diff := cmp.Diff("Every resource of cluster c1 has its Service.\n", none.String()); diff != "" {
		t.Errorf("text of none (-want +got):\n%s", diff)
	}
	unread := Orphans{ClusterID: "c1", Unread: []string{"read all NLBs: forbidden"}}
	if diff := cmp.Diff("Every resource of cluster c1 that could be read has its Service.\n! Not read, so that there may be more: read all NLBs: forbidden\n", unread.String()); diff != "" {
		t.Errorf("text where something was not read (-want +got):\n%s", diff)
	}
	if err := unread.Incomplete(); err == nil || none.Incomplete() != nil {
		t.Errorf("incomplete: %v and %v", err, none.Incomplete())
	}
	one := Orphans{ClusterID: "c1", Earlier: []string{"clusterid"}, Ambiguous: true, region: "cn-hangzhou", Orphans: []service.Orphan{
		{Kind: service.OrphanAccessList, ID: "acl-1", Reason: "gone", Delete: []string{"aliyun slb DeleteAccessControlList --AclId acl-1"}},
		{Kind: service.OrphanLoadBalancer, ID: "lb-1", Name: "a1", Reason: "gone", ClusterID: "clusterid", Delete: []string{"protection off", "aliyun slb DeleteLoadBalancer"}},
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
