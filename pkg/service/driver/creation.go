package driver

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Creation is a call that creates a load balancer. It stands in the [Record] before it is sent, so that whoever finds it there makes
// exactly the same call again, and the cloud answers with the load balancer that the first one made. A search could not tell: the index of
// tags lags, and anybody can give a load balancer a name.
type Creation struct {
	// Token is the client token of the call, a random one: with that of an earlier call, the cloud would answer with what that one made.
	Token string `json:"token"`
	// Parameters are those of the call, as the product of the load balancer encodes them.
	Parameters json.RawMessage `json:"parameters"`
	// Begun is when the call was sent first.
	Begun time.Time `json:"begun"`
}

// Open reports whether the call may still be made again. Later on, only a search shows what it made. One that is begun in the future was
// never begun, and would stay open for good.
func (c *Creation) Open() bool {
	return c != nil && time.Since(c.Begun) < waits.CreationRepeated && time.Until(c.Begun) < waits.CreationRepeated
}

// IsFor reports whether the call makes a load balancer that the Service may have: one of its own, or one of a group that it may join.
// Somebody may have written another one to the status of the Service: with the tag of another Service or group, that one would get there.
func (c *Creation) IsFor(svc *corev1.Service, config config.Config) bool {
	var made struct{ Tags []alicloud.Tag }
	if err := json.Unmarshal(c.Parameters, &made); err != nil {
		return false
	}
	owners := 0
	for _, tag := range made.Tags {
		group, grouped := mark.ParseGroup(tag.Value)
		switch {
		case tag.Key == mark.TagOwner && tag.Value == mark.DefaultName(svc.UID),
			tag.Key == mark.TagGroup && grouped && group.ClusterID == config.ClusterID &&
				config.Policy.AllowsGroup(svc.Namespace, group.Namespace, group.Name):
			owners++
		case tag.Key != mark.TagCluster && annotation.ReservedTags.Has(tag.Key):
			return false
		}
	}
	return owners == 1
}

// ClientToken returns the token of the call, empty for no call.
func (c *Creation) ClientToken() string {
	if c == nil {
		return ""
	}
	return c.Token
}

// Create makes the call that creates a load balancer. The call is noted on the Service before send makes it with the token, and how it
// ended afterwards.
type Create func(ctx context.Context, parameters any, send func(token string) (id string, err error)) error
