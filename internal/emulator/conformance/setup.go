package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
)

// ErrUsed means that a VPC is not one made for a run: it is the default one, or has instances.
var ErrUsed = errors.New("the VPC is in use")

// Inspect finds out what the options do not say about the network. It only reads, and refuses a VPC that somebody else uses.
func Inspect(ctx context.Context, o Options) (Options, error) {
	s, err := newSetup(ctx, o)
	if err != nil {
		return o, err
	}
	env := &s.options.Environment
	for i, id := range env.VSwitches {
		a := s.call("vpc", "DescribeVSwitchAttributes", P{"VSwitchId": id})
		env.Zones[i] = text(a, "ZoneId")
		if vpc := text(a, "VpcId"); s.err == nil && vpc != env.VPC {
			s.err = fmt.Errorf("the vSwitch %s is in the VPC %s, not in %s", id, vpc, env.VPC)
		}
	}
	if s.err == nil && env.Zones[0] == env.Zones[1] {
		s.err = fmt.Errorf("the vSwitches %s and %s are both in the zone %s, not in different ones", env.VSwitches[0], env.VSwitches[1],
			env.Zones[0])
	}
	s.unused()
	env.RouteTable = text(s.call("vpc", "DescribeRouteTableList", P{"VpcId": env.VPC, "RouteTableType": "System"}),
		"RouterTableList.RouterTableListType.0.RouteTableId")
	env.Account = text(s.call("sts", "GetCallerIdentity", nil), "AccountId")
	return s.options, s.err
}

// Setup makes the instances and the security group that scenarios need, in a network that Inspect has found. Remove with Clean what it
// made, also after an error.
func Setup(ctx context.Context, o Options) (Options, error) {
	s, err := newSetup(ctx, o)
	if err != nil {
		return o, err
	}
	env := &s.options.Environment
	env.SecurityGroup = text(s.call("ecs", "CreateSecurityGroup", P{"VpcId": env.VPC, "SecurityGroupName": "conformance"}), "SecurityGroupId")
	for i := range env.Instances {
		env.Instances[i] = text(s.call("ecs", "RunInstances", P{
			"ImageId": env.Image, "InstanceType": env.InstanceType, "VSwitchId": env.VSwitches[0], "SecurityGroupId": env.SecurityGroup,
			"InstanceName": "conformance",
		}), "InstanceIdSets.InstanceIdSet.0")
		s.running(env.Instances[i])
	}
	eni := s.call("ecs", "DescribeNetworkInterfaces", P{"InstanceId": env.Instances[0]})
	env.Interface = text(eni, "NetworkInterfaceSets.NetworkInterfaceSet.0.NetworkInterfaceId")
	env.Address = text(eni, "NetworkInterfaceSets.NetworkInterfaceSet.0.PrivateIpAddress")
	return s.options, s.err
}

func newSetup(ctx context.Context, o Options) (*setup, error) {
	c, err := newCaller(o)
	return &setup{ctx: ctx, options: o, caller: c, run: &R{options: o}}, err
}

// setup makes calls until one fails.
type setup struct {
	ctx     context.Context //nolint:containedctx // lives as long as one setup
	options Options
	caller  *caller
	run     *R
	err     error
}

func (s *setup) call(product, action string, p P) map[string]any {
	if s.err != nil {
		return nil
	}
	a, err := s.caller.call(s.ctx, product, action, "", s.run.tagged(product, action, p))
	switch {
	case err != nil:
		s.err = err
	case a.status/100 != 2:
		s.err = fmt.Errorf("%s %s %v: %d %s", product, action, maps.Clone(p), a.status, a.code)
	}
	return a.body
}

// unused refuses a VPC that was not made for a run.
func (s *setup) unused() {
	if s.options.Admin != nil {
		return
	}
	vpc := s.call("vpc", "DescribeVpcs", P{"VpcId": s.options.Environment.VPC})
	instances := s.call("ecs", "DescribeInstances", P{"VpcId": s.options.Environment.VPC})
	if s.err == nil && (at(vpc, "Vpcs.Vpc.0.IsDefault") == true || !equal(at(instances, "TotalCount"), 0)) {
		s.err = fmt.Errorf("%s: %w: make one for the run", s.options.Environment.VPC, ErrUsed)
	}
}

func (s *setup) running(id string) {
	for range tries {
		a := s.call("ecs", "DescribeInstances", P{"InstanceIds": fmt.Sprintf("[%q]", id)})
		if s.err != nil || text(a, "Instances.Instance.0.Status") == "Running" {
			return
		}
		if s.err = s.options.wait(s.ctx); s.err != nil {
			return
		}
	}
	s.err = fmt.Errorf("the instance %s does not run", id)
}
