//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrFollowing means that Follow was called before.
var ErrFollowing = errors.New("the network follows a cloud already")

// Follow keeps the kernel in line with the cloud: routes, checks, running machines; and serves their metadata. It returns when the
// present state is in the kernel, and goes on until Close. ctx bounds nothing but the call.
func (n *Network) Follow(ctx context.Context, cloud Cloud) error {
	n.mu.Lock()
	if n.metadata != nil {
		n.mu.Unlock()
		return ErrFollowing
	}
	n.metadata = cloud.Handler()
	n.mu.Unlock()
	changed := cloud.Changed()
	if err := n.adopt(cloud); err != nil {
		return err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = func() {
		stop()
		<-n.done
	}
	go func() {
		defer close(n.done)
		for {
			select {
			case <-changed:
			case <-following.Done():
				return
			}
			changed = cloud.Changed()
			if n.err = n.adopt(cloud); n.err != nil {
				return
			}
		}
	}()
	return nil
}

// Wait returns when ctx ends or the network is closed, with nil, or when the kernel has refused a change, with the reason: the network
// follows the cloud no longer then.
func (n *Network) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.done:
		return n.err
	}
}

// adopt reads the cloud and brings the kernel in line.
func (n *Network) adopt(cloud Cloud) error {
	topology := cloud.Topology(n.options.VPC)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.topology = topology
	return n.sync()
}

// sync brings the kernel in line. The caller holds n.mu.
func (n *Network) sync() error {
	want := planOf(input{
		topology: n.topology,
		ports:    slices.SortedFunc(maps.Values(n.ports), func(a, b *port) int { return strings.Compare(a.Name, b.Name) }),
		vips:     slices.Collect(maps.Keys(n.vips)),
		number:   n.number,
	})
	if err := n.kernel.apply(want); err != nil {
		return fmt.Errorf("VPC in the kernel: %w", err)
	}
	return nil
}

// number is the kernel table of a route table: the next free one at first sight, the same ever after.
func (n *Network) number(routeTableID string) int {
	number, known := n.numbers[routeTableID]
	if !known {
		number = firstRouteTable + len(n.numbers)
		n.numbers[routeTableID] = number
	}
	return number
}
