package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Reader is what reading takes of the cloud client.
type Reader interface {
	ListNLBs(ctx context.Context, query alicloud.NLBQuery) ([]alicloud.NLB, error)
	GetNLB(ctx context.Context, id string) (alicloud.NLB, error)
	ListNLBListeners(ctx context.Context, loadBalancers []string) ([]alicloud.NLBListener, error)
	AdditionalCertificates(ctx context.Context, listener string) ([]string, error)
	ListNLBGroups(ctx context.Context, query alicloud.NLBGroupQuery) ([]alicloud.NLBGroup, error)
	ListNLBServers(ctx context.Context, group string) ([]alicloud.NLBServer, error)
	DescribeSecurityGroups(ctx context.Context, tag alicloud.Tag) ([]alicloud.SecurityGroup, error)
	DescribeSecurityGroup(ctx context.Context, id string) (alicloud.SecurityGroup, error)
}

// Tagged reports whether tags hold exactly this one. Searches by tag are filtered again: how several combine differs.
func Tagged(tags []alicloud.Tag, tag alicloud.Tag) bool { return slices.Contains(tags, tag) }

// Owned returns the load balancers with the owner tag of a Service that are not about to go.
func Owned(ctx context.Context, api Reader, owner string) ([]alicloud.NLB, error) {
	tag := alicloud.Tag{Key: mark.TagOwner, Value: owner}
	found, err := api.ListNLBs(ctx, alicloud.NLBQuery{Tag: &tag})
	if err != nil {
		return nil, fmt.Errorf("search for the NLB by tag: %w", err)
	}
	return slices.DeleteFunc(found, func(lb alicloud.NLB) bool { return !Tagged(lb.Tags, tag) || lb.Status == alicloud.NLBDeleting }), nil
}

// Listeners returns the listeners of a load balancer, without their additional certificates.
func Listeners(ctx context.Context, api Reader, id string) ([]model.Listener, error) {
	found, err := api.ListNLBListeners(ctx, []string{id})
	if err != nil {
		return nil, fmt.Errorf("read the listeners of %s: %w", id, err)
	}
	listeners := make([]model.Listener, 0, len(found))
	for i := range found {
		if found[i].Status == alicloud.NLBListenerDeleting {
			continue
		}
		listeners = append(listeners, model.Listener{NLBListener: found[i]})
	}
	return listeners, nil
}

// Certificates reads the additional certificates of TCPSSL listeners. What is known of those that cannot be read stays.
func Certificates(ctx context.Context, api Reader, listeners []model.Listener) error {
	var errs []error
	for i := range listeners {
		listener := &listeners[i]
		if listener.Protocol != alicloud.NLBTCPSSL {
			continue
		}
		found, err := api.AdditionalCertificates(ctx, listener.ID)
		if err != nil {
			errs = append(errs, fmt.Errorf("read the certificates of %s: %w", listener.ID, err))
			continue
		}
		listener.Certificates = found
	}
	return errors.Join(errs...)
}

// OwnGroups returns the server groups with the owner tag of a Service, without their servers.
func OwnGroups(ctx context.Context, api Reader, owner string) ([]alicloud.NLBGroup, error) {
	tag := alicloud.Tag{Key: mark.TagOwner, Value: owner}
	own, err := api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{Tag: &tag})
	if err != nil {
		return nil, fmt.Errorf("read the server groups: %w", err)
	}
	return slices.DeleteFunc(own, func(g alicloud.NLBGroup) bool { return !Tagged(g.Tags, tag) }), nil
}

// Groups returns the own server groups of a Service, and those of others that it names by id, with their servers. Groups that are known,
// and that are not among the own ones, are asked for by id; missing are those that are not there either.
func Groups(
	ctx context.Context, api Reader, svc *corev1.Service, owner mark.Owner, own []alicloud.NLBGroup, joined, known []string,
) (groups []model.Group, missing []string, err error) {
	tag := alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(svc.UID)}
	found := slices.Clone(own)
	lacks := func(id string) bool {
		return !slices.ContainsFunc(found, func(g alicloud.NLBGroup) bool { return g.ID == id })
	}
	asked := slices.Compact(slices.Sorted(slices.Values(slices.Concat(joined, known))))
	for ids := range slices.Chunk(slices.DeleteFunc(asked, func(id string) bool { return !lacks(id) }), alicloud.MaxNLBQuery) {
		others, err := api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{IDs: ids})
		if err != nil {
			return nil, nil, fmt.Errorf("read the server groups %v: %w", ids, err)
		}
		found = append(found, others...)
	}
	for i := range found {
		if found[i].Status == alicloud.NLBGroupDeleting {
			continue
		}
		group, err := withServers(ctx, api, found[i])
		if err != nil {
			return nil, nil, err
		}
		group.Foreign = !Tagged(found[i].Tags, tag) && !owner.OwnsNLB(found[i].Name)
		groups = append(groups, group)
	}
	for _, id := range known {
		if lacks(id) {
			missing = append(missing, id)
		}
	}
	return groups, missing, nil
}

// withServers reads the servers of a group, if it has any.
func withServers(ctx context.Context, api Reader, group alicloud.NLBGroup) (model.Group, error) {
	if group.ServerCount == 0 {
		return model.Group{NLBGroup: group}, nil
	}
	servers, err := api.ListNLBServers(ctx, group.ID)
	if err != nil {
		return model.Group{}, fmt.Errorf("read the servers of %s: %w", group.ID, err)
	}
	return model.Group{NLBGroup: group, Servers: servers}, nil
}

// Access returns the security group of a Service's source ranges with its rules, nil for none. Of those with the owner tag, which anybody
// can copy, it is the one that was last seen, with the id expected, also if somebody has renamed it; else one with the name or the
// description that only we give. others are the ids of further such ones. That the search finds none proves nothing: tags are indexed late,
// people remove them, and the cloud answers a search that the role may not make with an empty list. The group with the id expected is the
// one then if it has the name, which holds the UID: authors write the label that the id may come from, and the description is also that of
// a Service of the same name in another cluster.
func Access(ctx context.Context, api Reader, svc *corev1.Service, expected string) (access *model.Access, others []string, err error) {
	tag := alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(svc.UID)}
	name, description := mark.OwnerOf(svc, "").NLBSecurityGroup(svc.UID)
	found, err := api.DescribeSecurityGroups(ctx, tag)
	if err != nil {
		return nil, nil, fmt.Errorf("search for the security group: %w", err)
	}
	// The description ends with the id of the cluster, which may have been another one.
	found = slices.DeleteFunc(found, func(g alicloud.SecurityGroup) bool {
		return !Tagged(g.Tags, tag) || g.ID != expected && g.Name != name && !strings.HasPrefix(g.Description, description)
	})
	slices.SortStableFunc(found, func(a, b alicloud.SecurityGroup) int {
		return cmp.Or(compareFirst(a.ID == expected, b.ID == expected), compareFirst(a.Name == name, b.Name == name), cmp.Compare(a.ID, b.ID))
	})
	id := expected
	if len(found) > 0 {
		id = found[0].ID
		for i := range found[1:] {
			others = append(others, found[1+i].ID)
		}
	}
	if id == "" {
		return nil, nil, nil
	}
	group, err := api.DescribeSecurityGroup(ctx, id)
	switch {
	case len(found) > 0 && err == nil:
		found[0].Rules = group.Rules
		return &model.Access{SecurityGroup: found[0]}, others, nil
	case len(found) == 0 && (alicloud.IsNotFound(err) || err == nil && group.Name != name):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read security group %s: %w", id, err)
	}
	return &model.Access{SecurityGroup: group}, nil, nil
}

// compareFirst orders what has a property before what does not.
func compareFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
