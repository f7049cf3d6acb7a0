package slb

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// observeExtensions adds their extensions to the HTTPS listeners that are the Service's or nobody's.
func observeExtensions(ctx context.Context, api reader, model *Model, service types.NamespacedName) error {
	for i := range model.Listeners {
		listener := &model.Listeners[i]
		marked, _, ok := parseMark(listener.Description)
		if listener.Protocol != alicloud.ProtocolHTTPS || ok && marked != service {
			continue
		}
		extensions, err := api.DescribeDomainExtensions(ctx, model.LoadBalancer.ID, listener.Port)
		if err != nil && !goneListener(err) {
			return fmt.Errorf("read the domain extensions of listener %s of %s: %w", listener.ListenerKey, model.LoadBalancer.ID, err)
		}
		listener.Extensions = extensions
	}
	return nil
}
