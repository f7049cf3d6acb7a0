package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// The admin API's view of the cloud, as far as the sandbox uses it; field names are those of the cloud's API.

type state struct {
	RouteTables []struct {
		RouteTableID string       `json:"RouteTableId"`
		RouteEntries []routeEntry `json:"routeEntries"`
	} `json:"routeTables"`
	LoadBalancers []loadBalancer `json:"loadBalancers"`
}

type routeEntry struct {
	Type                 string
	Status               string
	DestinationCidrBlock string
	NextHops             struct {
		NextHop []struct {
			NextHopID string `json:"NextHopId"`
		}
	}
}

type loadBalancer struct {
	LoadBalancerID string `json:"LoadBalancerId"`
	Address        string
	AddressType    string
	Listeners      []struct{ Status string } `json:"listeners"`
	VServerGroups  []struct {
		VServerGroupID string `json:"VServerGroupId"`
		BackendServers []struct {
			ServerID string `json:"ServerId"`
		} `json:"backendServers"`
	} `json:"vServerGroups"`
}

// RouteEntry is a custom entry of a route table.
type RouteEntry struct {
	CIDR, NextHop, Status string
}

// LoadBalancer is a CLB with the instances that are backends of any of its groups.
type LoadBalancer struct {
	ID, Address, AddressType string
	Servers                  []string
	// Groups are the instances of each vServer group, by its ID.
	Groups map[string][]string
	// Running is how many of its listeners run.
	Running int
}

// CustomRoutes lists the custom entries of all route tables.
func (c *Cloud) CustomRoutes(ctx context.Context) ([]RouteEntry, error) {
	state, err := c.state(ctx)
	if err != nil {
		return nil, err
	}
	var entries []RouteEntry
	for _, table := range state.RouteTables {
		for _, entry := range table.RouteEntries {
			if entry.Type != "Custom" {
				continue
			}
			next := ""
			if hops := entry.NextHops.NextHop; len(hops) > 0 {
				next = hops[0].NextHopID
			}
			entries = append(entries, RouteEntry{CIDR: entry.DestinationCidrBlock, NextHop: next, Status: entry.Status})
		}
	}
	return entries, nil
}

// LoadBalancers lists all load balancers.
func (c *Cloud) LoadBalancers(ctx context.Context) ([]LoadBalancer, error) {
	state, err := c.state(ctx)
	if err != nil {
		return nil, err
	}
	var balancers []LoadBalancer
	for _, lb := range state.LoadBalancers {
		balancer := LoadBalancer{ID: lb.LoadBalancerID, Address: lb.Address, AddressType: lb.AddressType, Groups: map[string][]string{}}
		for _, listener := range lb.Listeners {
			if listener.Status == "running" {
				balancer.Running++
			}
		}
		for _, group := range lb.VServerGroups {
			ids := make([]string, len(group.BackendServers))
			for i, backend := range group.BackendServers {
				ids[i] = backend.ServerID
			}
			balancer.Groups[group.VServerGroupID] = ids
			balancer.Servers = append(balancer.Servers, ids...)
		}
		balancers = append(balancers, balancer)
	}
	return balancers, nil
}

// state reads the whole state of the cloud.
func (c *Cloud) state(ctx context.Context) (*state, error) {
	answer, err := get(ctx, c.URL+"/_emulator/state")
	if err != nil {
		return nil, fmt.Errorf("read the state of the cloud: %w", err)
	}
	var s state
	if err := json.Unmarshal(answer, &s); err != nil {
		return nil, fmt.Errorf("decode the state of the cloud: %w", err)
	}
	return &s, nil
}

// get returns the answer of a sandbox. An answer that is no success is an error.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(answer))
	}
	return answer, nil
}
