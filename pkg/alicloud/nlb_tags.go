package alicloud

import "context"

// Kinds of tagged resources of NLB.
const (
	NLBTagLoadBalancer = "loadbalancer"
	NLBTagGroup        = "servergroup"
)

// nlbSmallPage is the largest page of the lists of tags and certificates.
const nlbSmallPage = 50

// TagNLB adds tags to resources of one kind (at most 50), or replaces the values of those that they have.
func (c *Client) TagNLB(ctx context.Context, kind string, ids []string, tags []Tag) error {
	return c.nlbWrite(ctx, "TagResources", params{"ResourceType": kind}.setList("ResourceId", ids).setTags(tags))
}

// UntagNLB removes tags by key from resources of one kind (at most 50); keys that they lack are ignored.
func (c *Client) UntagNLB(ctx context.Context, kind string, ids, keys []string) error {
	return c.nlbWrite(ctx, "UntagResources", params{"ResourceType": kind}.setList("ResourceId", ids).setList("TagKey", keys))
}
