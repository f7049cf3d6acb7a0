package provider

import (
	"errors"

	"k8s.io/client-go/tools/cache"
)

var errCachesEmpty = errors.New("the caches of Services, endpoints and nodes are not filled yet")

// Ready returns nil for a process that can do its work: it stands by for the leader, or it leads, its caches are filled, and the cloud
// answers. A restart helps with none of them, so that liveness is something else.
func (c *Cloud) Ready() error {
	synced := c.synced.Load()
	if synced == nil {
		return nil // stands by, or waits for the official CCM to end
	}
	for _, isSynced := range *synced {
		if !isSynced() {
			return errCachesEmpty
		}
	}
	return c.client.Reachable()
}

// follow has Ready ask for the caches that the engines read.
func (c *Cloud) follow(e *engines) {
	synced := []cache.InformerSynced{e.serviceOptions.Services.Informer().HasSynced, e.serviceOptions.Nodes.Informer().HasSynced}
	if c.endpointSlices {
		synced = append(synced, e.serviceOptions.EndpointSlices.Informer().HasSynced)
	} else {
		synced = append(synced, e.serviceOptions.Endpoints.Informer().HasSynced)
	}
	c.synced.Store(&synced)
}
