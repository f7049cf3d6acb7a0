package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// Orphans are the resources of this cluster in the cloud that no Service owns, and route entries that no Node wants.
type Orphans struct {
	// ClusterID is what the resources are recognized by.
	ClusterID string `json:"clusterID"`
	// Earlier are IDs that this cluster may have had, and that count, too: the literal of the official CCM, the derived one, and those on load
	// balancers of its Services.
	Earlier []string `json:"earlierClusterIDs"`
	// Ambiguous says that one of the orphans has the cluster ID that every cluster without a configured one has: it may belong to a Service of
	// another cluster of the account.
	Ambiguous bool            `json:"ambiguous"`
	Orphans   []driver.Orphan `json:"orphans"`
	// Unread says what could not be read, and why: there may be more orphans.
	Unread []string `json:"unread,omitempty"`
	// region is that of the commands.
	region string
}

// Empty reports whether there are none.
func (o Orphans) Empty() bool { return len(o.Orphans) == 0 }

// Incomplete is an error if something could not be read.
func (o Orphans) Incomplete() error {
	if len(o.Unread) == 0 {
		return nil
	}
	return fmt.Errorf("there may be more orphans than those listed: %s", strings.Join(o.Unread, "; "))
}

// deletedAt is the place of each kind in the order of deletion: a resource in use cannot be deleted.
var deletedAt = map[string]int{
	driver.OrphanListener: 1, driver.OrphanBackend: 2, driver.OrphanLoadBalancer: 3, driver.OrphanGroup: 4, driver.OrphanServerGroup: 4,
	driver.OrphanAccessList: 5, driver.OrphanSecurityGroup: 5,
}

// String returns the orphans for people, one per line, and the commands that delete them.
func (o Orphans) String() string {
	var text strings.Builder
	cluster := o.ClusterID
	if len(o.Earlier) > 0 {
		cluster += " (earlier " + strings.Join(o.Earlier, ", ") + ")"
	}
	switch {
	case !o.Empty():
		o.list(&text)
	case len(o.Unread) == 0:
		fmt.Fprintf(&text, "Every resource of cluster %s has its Service.\n", cluster)
	default:
		fmt.Fprintf(&text, "Every resource of cluster %s that could be read has its Service.\n", cluster)
	}
	for _, unread := range o.Unread {
		fmt.Fprintf(&text, "! Could not be read, so there may be more: %s\n", unread)
	}
	return text.String()
}

// list writes the orphans and the commands that delete them.
func (o Orphans) list(text *strings.Builder) {
	for i := range o.Orphans {
		fmt.Fprintln(text, o.Orphans[i])
	}
	fmt.Fprintln(text, "\nTo delete all of them:")
	ordered := slices.Clone(o.Orphans)
	slices.SortStableFunc(ordered, func(a, b driver.Orphan) int { return deletedAt[a.Kind] - deletedAt[b.Kind] })
	for i := range ordered {
		for _, command := range ordered[i].Delete {
			fmt.Fprintf(text, "  %s --RegionId %s\n", command, o.region)
		}
	}
	isKind := func(kinds ...string) bool {
		return slices.ContainsFunc(o.Orphans, func(orphan driver.Orphan) bool { return slices.Contains(kinds, orphan.Kind) })
	}
	if isKind(driver.OrphanLoadBalancer) && isKind(driver.OrphanServerGroup, driver.OrphanSecurityGroup) {
		fmt.Fprintln(text,
			"! NLBs are deleted in the background: if a server group or security group is still in use, run its command again a minute later.")
	}
	if o.Ambiguous {
		fmt.Fprintf(text, "! Every cluster without a configured clusterID is called %s: check which cluster owns them before you delete them.\n",
			officialClusterID)
	}
}

// Orphans compares what the cloud has for this cluster with its Services. It writes nothing. The informers given to
// SetInformers must have synced. preserved includes load balancers that stayed because an annotation asked for that.
func (c *Cloud) Orphans(ctx context.Context, preserved bool) (Orphans, error) {
	services, err := c.engines.serviceOptions.Services.Lister().List(labels.Everything())
	if err != nil {
		return Orphans{}, fmt.Errorf("list Services: %w", err)
	}
	earlier, err := c.earlierIDs(ctx)
	found, unread := c.engines.services.Orphans(ctx, driver.OrphanQuery{Services: services, ClusterIDs: earlier, Preserved: preserved})
	if err != nil {
		unread = append(unread, err)
	}
	routes, err := c.orphanedRoutes(ctx)
	if err != nil {
		unread = append(unread, err)
	}
	found.Orphans = append(found.Orphans, routes...)
	var texts []string
	for _, err := range unread {
		texts = append(texts, err.Error())
	}
	ambiguous := slices.ContainsFunc(found.Orphans, func(o driver.Orphan) bool { return o.ClusterID == officialClusterID })
	earlier = slices.DeleteFunc(found.ClusterIDs, func(id string) bool { return id == c.clusterID })
	return Orphans{ClusterID: c.clusterID, Earlier: earlier, Ambiguous: ambiguous, Orphans: found.Orphans, Unread: texts,
		region: c.client.Region()}, nil
}

// orphanedRoutes returns the route entries of this cluster that no Node wants.
func (c *Cloud) orphanedRoutes(ctx context.Context) (orphans []driver.Orphan, err error) {
	if len(c.settings.ClusterCIDRs) == 0 {
		return nil, nil
	}
	found, err := c.engines.routeOps.Orphans(ctx)
	if err != nil {
		err = fmt.Errorf("look for route entries: %w", err)
	}
	for i := range found {
		e := &found[i]
		orphan := driver.Orphan{Kind: driver.OrphanRouteEntry, ID: e.CIDR, In: e.TableID, Reason: e.Reason, ClusterID: c.clusterID,
			Delete: []string{
				fmt.Sprintf("aliyun vpc DeleteRouteEntry --RouteTableId %s --DestinationCidrBlock %s", e.TableID, e.CIDR),
			}}
		if e.Instance != "" {
			orphan.Delete[0] += " --NextHopId " + e.Instance
		}
		orphans = append(orphans, orphan)
	}
	return orphans, err
}

// earlierIDs returns the IDs that this cluster had if it was not configured with its ID of today from the beginning, whatever the cloud
// has: the one that is derived, where the role may read what from, and the literal of the official CCM.
func (c *Cloud) earlierIDs(ctx context.Context) ([]string, error) {
	namespace, err := c.kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case err == nil:
		return []string{officialClusterID, derivedClusterID(namespace.UID)}, nil
	case apierrors.IsForbidden(err):
		return []string{officialClusterID}, nil
	default:
		return []string{officialClusterID}, fmt.Errorf("derive an earlier cluster ID from Namespace %s: %w", metav1.NamespaceSystem, err)
	}
}
