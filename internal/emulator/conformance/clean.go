package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// kind is a kind of resource that scenarios make.
type kind struct {
	// product and create make it; id is the path of its id in the answer.
	product, create, id string
	// remove removes it by param.
	remove, param string
	// with are further parameters of remove.
	with P
	// rank orders removals: what others depend on has a higher one.
	rank int
	// tag says how the resource is marked: "Tag" with tags, or with a name in this parameter; byName then searches by the name.
	tag, byName string
	// free are calls before the removal whose failures do not matter: they unbind, or take a protection away.
	free []freeing
	// list and found find it by its mark: the action, its parameters, and the path to the list and to the id of an item.
	list, items, item string
	filter            P
}

type freeing struct {
	action string
	with   P
}

// kinds are all kinds of resources that scenarios make. Listeners, vServer groups and route entries go with what they belong to.
func kinds() []kind {
	return []kind{
		{
			product: "slb", create: "CreateLoadBalancer", id: "LoadBalancerId", remove: "DeleteLoadBalancer", param: "LoadBalancerId", tag: "Tag",
			rank: 1,
			free: []freeing{{"SetLoadBalancerDeleteProtection", P{"DeleteProtection": "off"}}},
			list: "DescribeLoadBalancers", items: "LoadBalancers.LoadBalancer", item: "LoadBalancerId", filter: P{"PageSize": "100"},
		},
		{
			product: "nlb", create: "CreateLoadBalancer", id: "LoadbalancerId", remove: "DeleteLoadBalancer", param: "LoadBalancerId", tag: "Tag",
			rank: 1,
			free: []freeing{{"UpdateLoadBalancerProtection", P{"DeletionProtectionEnabled": "false"}}},
			list: "ListLoadBalancers", items: "LoadBalancers", item: "LoadBalancerId", filter: P{"MaxResults": "100"},
		},
		{
			product: "nlb", create: "CreateServerGroup", id: "ServerGroupId", remove: "DeleteServerGroup", param: "ServerGroupId", tag: "Tag",
			rank: 2,
			list: "ListServerGroups", items: "ServerGroups", item: "ServerGroupId", filter: P{"MaxResults": "100"},
		},
		{
			product: "slb", create: "CreateAccessControlList", id: "AclId", remove: "DeleteAccessControlList", param: "AclId", tag: "Tag", rank: 2,
			list: "DescribeAccessControlLists", items: "Acls.Acl", item: "AclId", filter: P{"PageSize": "50"},
		},
		{
			product: "slb", create: "UploadServerCertificate", id: "ServerCertificateId", remove: "DeleteServerCertificate",
			param: "ServerCertificateId", tag: "Tag", rank: 2,
			list: "DescribeServerCertificates", items: "ServerCertificates.ServerCertificate", item: "ServerCertificateId",
		},
		{
			product: "vpc", create: "AllocateEipAddress", id: "AllocationId", remove: "ReleaseEipAddress", param: "AllocationId", tag: "Name",
			byName: "EipName", rank: 2,
			free: []freeing{{"UnassociateEipAddress", nil}},
			list: "DescribeEipAddresses", items: "EipAddresses.EipAddress", item: "AllocationId", filter: P{"PageSize": "100"},
		},
		{
			product: "vpc", create: "CreateRouteTable", id: "RouteTableId", remove: "DeleteRouteTable", param: "RouteTableId", tag: "Tag", rank: 3,
			list: "DescribeRouteTableList", items: "RouterTableList.RouterTableListType", item: "RouteTableId", filter: P{"PageSize": "50"},
		},
		{
			product: "ecs", create: "RunInstances", id: "InstanceIdSets.InstanceIdSet.0", remove: "DeleteInstance", param: "InstanceId",
			with: P{"Force": "true"}, tag: "Tag", rank: 4,
			list: "DescribeInstances", items: "Instances.Instance", item: "InstanceId", filter: P{"PageSize": "100"},
		},
		{
			product: "ecs", create: "CreateSecurityGroup", id: "SecurityGroupId", remove: "DeleteSecurityGroup", param: "SecurityGroupId",
			tag: "Tag", rank: 5,
			list: "DescribeSecurityGroups", items: "SecurityGroups.SecurityGroup", item: "SecurityGroupId", filter: P{"PageSize": "100"},
		},
	}
}

// resource is one that a scenario made.
type resource struct {
	kind
	value string
}

// tagged returns the parameters of a call, with the mark of the run where it makes something.
func (r *R) tagged(product, action string, p P) map[string]string {
	out := maps.Clone(map[string]string(p))
	if out == nil {
		out = map[string]string{}
	}
	for _, k := range kinds() {
		if k.product != product || k.create != action {
			continue
		}
		if k.tag != "Tag" {
			out[k.tag] = TagKey + "-" + r.options.Tag
			continue
		}
		n := 1
		for out["Tag."+strconv.Itoa(n)+".Key"] != "" {
			n++
		}
		out["Tag."+strconv.Itoa(n)+".Key"], out["Tag."+strconv.Itoa(n)+".Value"] = TagKey, r.options.Tag
	}
	return out
}

// remember notes what a call has made, and what it has removed.
func (r *R) remember(product, action string, a answer) {
	if a.status/100 != 2 {
		return
	}
	for _, k := range kinds() {
		if k.product != product || k.create != action {
			continue
		}
		id, _ := at(a.body, k.id).(string)
		if id == "" && k.product == "nlb" {
			id, _ = a.body["LoadBalancerId"].(string)
		}
		if id != "" && !slices.ContainsFunc(r.made, func(m resource) bool { return m.value == id }) {
			r.made = append(r.made, resource{k, id})
		}
	}
}

// clean removes what the scenario made, and takes back its settings. It goes on when the context has ended.
func (r *R) clean() error {
	var errs []error
	for _, restore := range r.restore {
		errs = append(errs, restore())
	}
	if r.options.Admin != nil {
		_, err := r.options.Admin(context.WithoutCancel(r.ctx), "DELETE", "/_emulator/faults", "")
		errs = append(errs, err)
	}
	slices.SortStableFunc(r.made, func(a, b resource) int { return a.rank - b.rank })
	for _, m := range r.made {
		errs = append(errs, r.options.remove(context.WithoutCancel(r.ctx), r.caller, m))
	}
	return errors.Join(errs...)
}

// remove removes one resource, repeating what is busy. That it is gone is a success.
func (o Options) remove(ctx context.Context, c *caller, m resource) error {
	if m.product == "vpc" && m.create == "CreateRouteTable" {
		if err := o.emptyTable(ctx, c, m.value); err != nil {
			return err
		}
	}
	p := P{m.param: m.value}
	maps.Copy(p, m.with)
	// Before each attempt: an address that was being bound at the first one is bound at the next.
	return o.repeat(ctx, c, m.product, m.remove, p, func() error {
		for _, f := range m.free {
			with := P{m.param: m.value}
			maps.Copy(with, f.with)
			if _, err := c.call(ctx, m.product, f.action, "", with); err != nil {
				return err
			}
		}
		return nil
	})
}

// repeat makes a call until it succeeds, or its object is gone. before is called ahead of each attempt.
func (o Options) repeat(ctx context.Context, c *caller, product, action string, p P, before func() error) error {
	for try := 0; ; try++ {
		if err := before(); err != nil {
			return err
		}
		a, err := c.call(ctx, product, action, "", p)
		switch {
		case err != nil:
			return err
		case a.status/100 == 2, a.status == 404, strings.Contains(a.code, "NotFound"), a.code == "AclNotExist", a.code == "CertificateNotExist":
			return nil
		case try >= tries, !facts.Transient(a.code) && !slices.Contains(endings, a.code):
			return fmt.Errorf("%s %s %v: %d %s", product, action, p, a.status, a.code)
		}
		if err := o.wait(ctx); err != nil {
			return err
		}
	}
}

// endings are refusals that end when an earlier removal does.
var endings = []string{"IncorrectEipStatus", "IncorrectRouteTableStatus.RouteEntryExist", "OperationDenied.DeleteProtectionIsOn"}

// emptyTable removes the custom entries of a route table.
func (o Options) emptyTable(ctx context.Context, c *caller, table string) error {
	a, err := c.call(ctx, "vpc", "DescribeRouteEntryList", "", P{"RouteTableId": table, "RouteEntryType": "Custom", "MaxResult": "100"})
	if err != nil {
		return err
	}
	entries, _ := at(a.body, "RouteEntrys.RouteEntry").([]any)
	for _, e := range entries {
		id, _ := at(e, "RouteEntryId").(string)
		if err := o.repeat(ctx, c, "vpc", "DeleteRouteEntry", P{"RouteEntryId": id}, func() error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Clean removes everything that runs with the tag have left, also those that were killed; "" means every run.
func Clean(ctx context.Context, o Options) (removed []string, err error) {
	c, err := newCaller(o)
	if err != nil {
		return nil, err
	}
	all := kinds()
	slices.SortStableFunc(all, func(a, b kind) int { return a.rank - b.rank })
	var errs []error
	for _, k := range all {
		gone, err := o.cleanKind(ctx, c, k)
		removed, errs = append(removed, gone...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// cleanKind removes what runs have left of a kind, until a list has nothing new.
func (o Options) cleanKind(ctx context.Context, c *caller, k kind) (removed []string, err error) {
	tried := map[string]bool{}
	var errs []error
	for page := 1; ; page++ {
		ids, more, err := o.left(ctx, c, k, page)
		if err != nil {
			return removed, errors.Join(append(errs, err)...)
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return tried[id] })
		for _, id := range ids {
			tried[id] = true
			err := o.remove(ctx, c, resource{k, id})
			errs = append(errs, err)
			if err == nil {
				removed = append(removed, k.product+" "+id)
			}
		}
		switch {
		case len(ids) > 0:
			page = 0 // the others have moved up
		case !more:
			return removed, errors.Join(errs...)
		}
	}
}

// left finds the resources of a kind that runs have left on one page, and whether there is another one. A search by tag has them all on the
// first: what was found is gone when the search is repeated.
func (o Options) left(ctx context.Context, c *caller, k kind, page int) (ids []string, more bool, err error) {
	p := maps.Clone(k.filter)
	if p == nil {
		p = P{}
	}
	switch {
	case k.tag == "Tag":
		p["Tag.1.Key"] = TagKey
		if o.Tag != "" {
			p["Tag.1.Value"] = o.Tag
		}
	case o.Tag != "":
		p[k.byName] = TagKey + "-" + o.Tag
	}
	if k.tag != "Tag" {
		p["PageNumber"] = strconv.Itoa(page)
	}
	a, err := c.call(ctx, k.product, k.list, "", p)
	if err != nil {
		return nil, false, err
	}
	if a.status/100 != 2 {
		return nil, false, fmt.Errorf("%s %s: %d %s", k.product, k.list, a.status, a.code)
	}
	items, _ := at(a.body, k.items).([]any)
	for _, item := range items {
		name, _ := at(item, "Name").(string)
		id, _ := at(item, k.item).(string)
		if k.tag == "Tag" || strings.HasPrefix(name, TagKey+"-") {
			ids = append(ids, id)
		}
	}
	return ids, k.tag != "Tag" && strconv.Itoa(len(items)) == p["PageSize"], nil
}
