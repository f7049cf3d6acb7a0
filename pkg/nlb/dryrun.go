package nlb

import (
	"context"
	"net/http"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/dryrun"
)

// dryCloud is the cloud as it would be after writes that a dry run has planned. It can read the cloud only, so that no write that it lacks reaches that. Its
// jobs have ended when they begin.
type dryCloud struct {
	reader

	balancers      dryrun.Objects[alicloud.NLB]
	listeners      dryrun.Objects[alicloud.NLBListener]
	certificates   dryrun.Objects[[]string] // by listener
	groups         dryrun.Objects[alicloud.NLBGroup]
	servers        dryrun.Objects[[]alicloud.NLBServer] // by group
	securityGroups dryrun.Objects[alicloud.SecurityGroup]
	rules          dryrun.Objects[[]alicloud.SecurityRule] // by security group

	ids dryrun.IDs
}

// errDeleted is what the cloud says of something that was deleted.
func errDeleted(kind string) error {
	return &alicloud.Error{Code: "ResourceNotFound." + kind, Status: http.StatusNotFound}
}

// matches reports whether something that was created is what a query asks for.
func matches(id, name string, tags []alicloud.Tag, ids, names []string, tag *alicloud.Tag) bool {
	tagged := tag == nil || slices.ContainsFunc(tags, func(have alicloud.Tag) bool {
		return have.Key == tag.Key && (tag.Value == "" || tag.Value == have.Value)
	})
	return tagged && (len(ids) == 0 || slices.Contains(ids, id)) && (len(names) == 0 || slices.Contains(names, name))
}

// ListNLBs implements observe.Reader.
func (d *dryCloud) ListNLBs(ctx context.Context, query alicloud.NLBQuery) ([]alicloud.NLB, error) {
	found, err := d.reader.ListNLBs(ctx, query)
	if err != nil {
		return nil, err
	}
	return d.balancers.List(found, func(lb *alicloud.NLB) string { return lb.ID }, func(lb *alicloud.NLB) bool {
		return matches(lb.ID, lb.Name, lb.Tags, query.IDs, query.Names, query.Tag)
	}), nil
}

// GetNLB implements observe.Reader.
func (d *dryCloud) GetNLB(ctx context.Context, id string) (alicloud.NLB, error) {
	return d.balancers.Get(id, func() (alicloud.NLB, error) { return d.reader.GetNLB(ctx, id) }, errDeleted("loadBalancer"))
}

// ListNLBListeners implements observe.Reader.
func (d *dryCloud) ListNLBListeners(ctx context.Context, loadBalancers []string) (found []alicloud.NLBListener, err error) {
	if existing := d.balancers.InCloud(loadBalancers); len(existing) > 0 {
		if found, err = d.reader.ListNLBListeners(ctx, existing); err != nil {
			return nil, err
		}
	}
	return d.listeners.List(found, func(l *alicloud.NLBListener) string { return l.ID }, func(l *alicloud.NLBListener) bool {
		return slices.Contains(loadBalancers, l.LoadBalancerID)
	}), nil
}

// AdditionalCertificates implements observe.Reader.
func (d *dryCloud) AdditionalCertificates(ctx context.Context, listener string) ([]string, error) {
	return d.certificates.Get(listener, func() ([]string, error) { return d.reader.AdditionalCertificates(ctx, listener) }, errDeleted("listener"))
}

// ListNLBGroups implements observe.Reader.
func (d *dryCloud) ListNLBGroups(ctx context.Context, query alicloud.NLBGroupQuery) ([]alicloud.NLBGroup, error) {
	found, err := d.reader.ListNLBGroups(ctx, query)
	if err != nil {
		return nil, err
	}
	return d.groups.List(found, func(g *alicloud.NLBGroup) string { return g.ID }, func(g *alicloud.NLBGroup) bool {
		return matches(g.ID, g.Name, g.Tags, query.IDs, query.Names, query.Tag)
	}), nil
}

// ListNLBServers implements observe.Reader.
func (d *dryCloud) ListNLBServers(ctx context.Context, group string) ([]alicloud.NLBServer, error) {
	return d.servers.Get(group, func() ([]alicloud.NLBServer, error) { return d.reader.ListNLBServers(ctx, group) }, errDeleted("serverGroup"))
}

// DescribeSecurityGroups implements observe.Reader.
func (d *dryCloud) DescribeSecurityGroups(ctx context.Context, tag alicloud.Tag) ([]alicloud.SecurityGroup, error) {
	found, err := d.reader.DescribeSecurityGroups(ctx, tag)
	if err != nil {
		return nil, err
	}
	return d.securityGroups.List(found, func(g *alicloud.SecurityGroup) string { return g.ID }, func(g *alicloud.SecurityGroup) bool {
		return observe.Tagged(g.Tags, tag)
	}), nil
}

// SecurityRules implements observe.Reader.
func (d *dryCloud) SecurityRules(ctx context.Context, id string) ([]alicloud.SecurityRule, error) {
	return d.rules.Get(id, func() ([]alicloud.SecurityRule, error) { return d.reader.SecurityRules(ctx, id) }, errDeleted("securityGroup"))
}
