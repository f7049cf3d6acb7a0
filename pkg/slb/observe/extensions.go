package observe

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Extensions adds their extensions to the HTTPS listeners that are the Service's or nobody's.
func Extensions(ctx context.Context, api Reader, observed *model.Model, service types.NamespacedName) error {
	for i := range observed.Listeners {
		listener := &observed.Listeners[i]
		marked, _, ok := mark.Parse(listener.Description)
		if listener.Protocol != alicloud.ProtocolHTTPS || ok && marked != service {
			continue
		}
		extensions, err := api.DescribeDomainExtensions(ctx, observed.LoadBalancer.ID, listener.Port)
		if err != nil && !model.ListenerGone(err) {
			return fmt.Errorf("read the domain extensions of listener %s of %s: %w", listener.ListenerKey, observed.LoadBalancer.ID, err)
		}
		listener.Extensions = extensions
	}
	return nil
}
