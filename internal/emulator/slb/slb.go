// Package slb carries out the actions of Classic Load Balancer (product code slb) on the store.
//
// It decides what a load balancer looks like; carrying traffic is the business of package fabric.
package slb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// service carries the store that the actions work on.
type service struct{ *cloud.Store }

// Product returns the actions of CLB on a store.
func Product(s *cloud.Store) api.Product {
	v := service{s}
	return api.Product{Name: "slb", Version: api.VersionSLB, Actions: slices.Concat(
		v.instanceActions(), v.listenerActions(), v.groupActions(), v.tagActions(), v.certificateActions(), v.extensionActions(),
		v.aclActions(), v.otherActions(),
	)}
}

// onOff are the two values of the switches.
func onOff(name string, opts ...func(*api.Param)) api.Param {
	return api.Str(name, append(opts, api.OneOf("on", "off"))...)
}

func lbID() api.Param { return api.Str("LoadBalancerId", api.Required) }

type tagList struct{ Tag []cloud.TagView }

// loadBalancer finds the CLB of a call.
func (s service) loadBalancer(c *api.Call) (*cloud.LoadBalancer, error) {
	lb, ok := s.LoadBalancers.Get(c.Str("LoadBalancerId"))
	if !ok || !c.Finds(lb.Created) {
		return nil, lbNotFound()
	}
	return lb, nil
}

// lbNotFound has a text that clients in production match.
func lbNotFound() *api.Error {
	return api.NotFound("InvalidLoadBalancerId.NotFound", "The specified LoadBalancerId does not exist.")
}

// writable finds the CLB of a call that changes it; a locked one refuses.
func (s service) writable(c *api.Call) (*cloud.LoadBalancer, error) {
	lb, err := s.loadBalancer(c)
	if err != nil {
		return nil, err
	}
	if lb.Status == cloud.Locked {
		return nil, api.BadRequest("ActionNotAllowed", "The load balancer %s is locked.", lb.ID)
	}
	return lb, nil
}

// done is the answer of the request id alone.
func done() (any, error) { return nil, nil } //nolint:nilnil // the encoder adds the request id

func holdGroup(c *api.Call) []string { return []string{"vgroup/" + c.Str("VServerGroupId")} }

func holdListener(c *api.Call) []string {
	return []string{"listener/" + c.Str("LoadBalancerId") + "/" + c.Str("ListenerPort")}
}
