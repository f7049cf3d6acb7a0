package provider

import (
	"encoding/json"
	"strings"
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
	one := Orphans{ClusterID: "clusterid", Ambiguous: true, Orphans: []service.Orphan{{Kind: service.OrphanLoadBalancer, ID: "lb-1", Name: "a1", Reason: "gone"}}}
	if !strings.HasPrefix(one.String(), "load balancer lb-1 (a1): gone\n! Every cluster") {
		t.Errorf("text of one: %q", one)
	}
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"clusterID":"clusterid","ambiguous":true,"orphans":[{"kind":"load balancer","id":"lb-1","name":"a1","reason":"gone"}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}
