package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// clearing is how long namespaces may take to go after the specs, with their Services and what those have in the cloud.
const clearing = 2 * time.Minute

// left is what the specs have made in the cloud and should not have left there.
type left struct {
	LoadBalancers []struct {
		ID string `json:"LoadBalancerId"`
	} `json:"loadBalancers"`
	ACLs []struct {
		ID string `json:"AclId"`
	} `json:"acls"`
	NLBs []struct {
		ID string `json:"LoadBalancerId"`
	} `json:"networkLoadBalancers"`
	Groups []struct {
		ID string `json:"ServerGroupId"`
	} `json:"serverGroups"`
	SecurityGroups []struct {
		ID   string `json:"SecurityGroupId"`
		Name string `json:"SecurityGroupName"`
	} `json:"securityGroups"`
}

// madeForNLBs begins the names of security groups of Services.
const madeForNLBs = "k8s-nlb-"

func (l left) String() string {
	var all []string
	for _, lb := range l.LoadBalancers {
		all = append(all, "load balancer "+lb.ID)
	}
	for _, acl := range l.ACLs {
		all = append(all, "access control list "+acl.ID)
	}
	for _, lb := range l.NLBs {
		all = append(all, "load balancer "+lb.ID)
	}
	for _, group := range l.Groups {
		all = append(all, "server group "+group.ID)
	}
	for _, group := range l.SecurityGroups {
		if strings.HasPrefix(group.Name, madeForNLBs) {
			all = append(all, "security group "+group.ID)
		}
	}
	return strings.Join(all, ", ")
}

// awaitNothingLeft waits until the cloud has nothing of the specs any more.
func (c *cluster) awaitNothingLeft(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clearing)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		state, err := get(ctx, c.emulator+"/_emulator/state")
		if err != nil {
			return err
		}
		var now left
		if err = json.Unmarshal([]byte(state), &now); err != nil {
			return fmt.Errorf("read the state of the cloud: %w", err)
		}
		if now.String() == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s after the specs the cloud still has: %s", clearing, now)
		}
	}
}
