package provider

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

// Orphans are the resources of this cluster in the cloud that no Service owns.
type Orphans struct {
	// ClusterID is what the resources are recognised by.
	ClusterID string `json:"clusterID"`
	// Ambiguous says that the cluster id is the one that every cluster without a configured one has: an orphan may belong
	// to a Service of another cluster of the account.
	Ambiguous bool             `json:"ambiguous"`
	Orphans   []service.Orphan `json:"orphans"`
}

// Empty reports whether there are none.
func (o Orphans) Empty() bool { return len(o.Orphans) == 0 }

// String returns the orphans for people, one per line.
func (o Orphans) String() string {
	if o.Empty() {
		return fmt.Sprintf("Every resource of cluster %s has its Service.\n", o.ClusterID)
	}
	var text strings.Builder
	for _, orphan := range o.Orphans {
		fmt.Fprintln(&text, orphan)
	}
	if o.Ambiguous {
		fmt.Fprintf(&text, "! Every cluster without a configured clusterID is called %s: look whose these are before you delete them.\n", o.ClusterID)
	}
	return text.String()
}

// Orphans compares what the cloud has for this cluster with its Services. It writes nothing. The informers given to
// SetInformers must have synced.
func (c *Cloud) Orphans(ctx context.Context) (Orphans, error) {
	services, err := c.engines.serviceOptions.Services.Lister().List(labels.Everything())
	if err != nil {
		return Orphans{}, fmt.Errorf("list Services: %w", err)
	}
	found, err := c.engines.services.Orphans(ctx, services)
	if err != nil {
		return Orphans{}, err
	}
	return Orphans{ClusterID: c.clusterID, Ambiguous: c.clusterID == officialClusterID, Orphans: found}, nil
}
