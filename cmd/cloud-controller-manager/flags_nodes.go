package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// nodeFlags are the flags about nodes.
type nodeFlags struct {
	guard           node.GuardOptions
	onPremisesCIDRs []string
}

func (f *nodeFlags) addTo(flags *pflag.FlagSet) {
	flags.IntVar(&f.guard.Confirmations, "node-gone-confirmations", 3,
		"Number of consecutive responses of ECS that must not contain the instance of a node before the Node is deleted. Only Nodes whose Ready condition is Unknown are deleted.")
	flags.DurationVar(&f.guard.Over, "node-gone-over", 2*time.Minute, "Minimum time between the first and the last of these responses.")
	flags.IntVar(&f.guard.MaxDeletions, "node-deletion-cap", 5,
		"Maximum number of Nodes to delete per interval, limited to a third of the nodes. One Node can always be deleted.")
	flags.IntVar(&f.guard.MaxPercent, "node-deletion-cap-percent", 10,
		"Percentage of the remaining nodes that replaces --node-deletion-cap if it is more. If most nodes are gone, "+
			"the last Nodes are deleted late: with the defaults, 270 of 300 take 2 hours.")
	flags.DurationVar(&f.guard.Interval, "node-deletion-interval", 5*time.Minute, "Interval of --node-deletion-cap.")
	flags.StringSliceVar(&f.onPremisesCIDRs, "on-premises-cidrs", nil,
		"Addresses of machines on premises or in another cloud. Nodes that have only such addresses and no provider ID are initialized without an ECS instance.")
}

// check validates the flags that bound the deletion of Nodes.
func (f *nodeFlags) check() error {
	switch {
	case f.guard.Confirmations < 1:
		return fmt.Errorf("--node-gone-confirmations: %d, accepted: 1 or more", f.guard.Confirmations)
	case f.guard.Over < 0:
		return fmt.Errorf("--node-gone-over: %s, accepted: 0s or more", f.guard.Over)
	case f.guard.MaxDeletions < 1:
		return fmt.Errorf("--node-deletion-cap: %d, accepted: 1 or more", f.guard.MaxDeletions)
	case f.guard.MaxPercent < 1 || f.guard.MaxPercent > 100:
		return fmt.Errorf("--node-deletion-cap-percent: %d, accepted: 1 to 100", f.guard.MaxPercent)
	case f.guard.Interval <= 0:
		return fmt.Errorf("--node-deletion-interval: %s, accepted: more than 0s", f.guard.Interval)
	}
	_, err := f.onPremises()
	return err
}

// guardOptions returns the bounds as pkg/node has them, where a zero value means the default.
func (f *nodeFlags) guardOptions() node.GuardOptions {
	guard := f.guard
	if guard.Over == 0 {
		guard.Over = -1
	}
	return guard
}

// onPremises returns the CIDRs of --on-premises-cidrs.
func (f *nodeFlags) onPremises() ([]netip.Prefix, error) {
	var cidrs []netip.Prefix
	for _, text := range f.onPremisesCIDRs {
		cidr, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--on-premises-cidrs: %q, accepted: CIDRs such as \"192.168.0.0/16\"", text)
		}
		cidrs = append(cidrs, cidr.Masked())
	}
	return cidrs, nil
}
