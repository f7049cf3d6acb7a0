package build

import (
	"cmp"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// defaultBandwidth is the bandwidth in Mbit/s of a CLB that begins to pay by bandwidth where no annotation gives one.
const defaultBandwidth = 50

func (b *builder) loadBalancer() {
	if b.in.Shared != nil {
		b.sharedLoadBalancer()
		return
	}
	b.buildAttributes()
}

// buildAttributes fills in the attributes of the CLB: those that annotations manage, and those that a new CLB gets.
func (b *builder) buildAttributes() {
	params, config := b.in.Params, b.in.Config
	b.model.CreateBlocked = params.Refuses(annotation.ScopeCreation) || params.Refused(annotation.BackendType)
	b.model.LoadBalancer = b.managedLoadBalancer()
	b.model.RemoveTags, b.model.RemoveDomains = b.in.RemoveTags, b.in.RemoveDomains

	create := b.model.LoadBalancer
	create.AddressType, create.AddressIPVersion, create.NetworkType = params.AddressType(), params.Get(annotation.IPVersion), ""
	if create.Name == "" {
		create.Name = b.in.Shared.BalancerName(b.in.Service)
	}
	create.InstanceChargeType = params.Or(annotation.InstanceChargeType, model.PayByCLCU)
	create.DeleteProtection = params.Or(annotation.DeleteProtection, alicloud.ProtectionOn)
	create.ModificationProtection = params.Or(annotation.ModificationProtection, alicloud.ConsoleProtection)
	if create.ModificationProtection == alicloud.ConsoleProtection {
		create.ModificationProtectionReason = mark.ProtectionReason
	}
	create.ResourceGroupID = params.Or(annotation.ResourceGroupID, config.ResourceGroupID)
	if create.InstanceChargeType == model.PayBySpec && create.Spec == "" {
		create.Spec = annotation.DefaultSpec
	}
	b.model.Create = create
	b.chooseVSwitches()
	b.checkPlace()
}

// chooseVSwitches chooses the vSwitches of a new CLB of address type intranet.
func (b *builder) chooseVSwitches() {
	params, config := b.in.Params, b.in.Config
	switch {
	case params.AddressType() != alicloud.AddressIntranet:
	case params.Get(annotation.NetworkType) == annotation.NetworkClassic:
		b.model.VSwitchIDs = []string{""}
	default:
		b.model.Create.VPCID = config.VPCID
		b.model.VSwitchIDs = config.VSwitchIDs
		if params.Has(annotation.VSwitchID) {
			b.model.VSwitchIDs = []string{params.Get(annotation.VSwitchID)}
		}
	}
}

// checkPlace reports what a new CLB cannot have.
func (b *builder) checkPlace() {
	params := b.in.Params
	if b.in.Observed != nil {
		return // a value that differs from that of the CLB is reported as one that cannot change
	}
	for _, suffix := range []annotation.Suffix{annotation.MasterZoneID, annotation.SlaveZoneID} {
		if zone := params.Get(suffix); zone != "" && !strings.HasPrefix(zone, b.in.Config.Region) {
			b.model.CreateBlocked = true
			b.addProblem(problem.ReasonInvalidAnnotation, "%s: %q is not accepted; accepted: a zone of region %s", suffix, zone, b.in.Config.Region)
		}
	}
	if params.Has(annotation.IP) &&
		(params.AddressType() != alicloud.AddressIntranet || !params.Has(annotation.VSwitchID) ||
			params.Get(annotation.IPVersion) == annotation.FamilyIPv6) {
		b.model.CreateBlocked = true
		b.addProblem(problem.ReasonInvalidAnnotation, "%s (or spec.loadBalancerIP) needs %s: intranet, %s and an IPv4 CLB", annotation.IP,
			annotation.AddressType, annotation.VSwitchID)
	}
}

func (b *builder) managedLoadBalancer() alicloud.LoadBalancer {
	params := b.in.Params
	lb := alicloud.LoadBalancer{
		Name:                   b.managedName(),
		Address:                params.Get(annotation.IP),
		AddressType:            params.Get(annotation.AddressType),
		AddressIPVersion:       params.Get(annotation.IPVersion),
		VSwitchID:              params.Get(annotation.VSwitchID),
		MasterZoneID:           params.Get(annotation.MasterZoneID),
		SlaveZoneID:            params.Get(annotation.SlaveZoneID),
		ResourceGroupID:        params.Get(annotation.ResourceGroupID),
		InstanceChargeType:     params.Get(annotation.InstanceChargeType),
		DeleteProtection:       params.Get(annotation.DeleteProtection),
		ModificationProtection: params.Get(annotation.ModificationProtection),
		Tags:                   mark.Tags(b.in.Service, b.in.ClusterID),
	}
	if b.in.Shared != nil {
		lb.Tags = []alicloud.Tag{{Key: mark.TagGroup, Value: b.in.Shared.Group.Mark()}}
	}
	if b.observed.Reused {
		lb.Tags = []alicloud.Tag{{Key: mark.TagReused, Value: "true"}}
	} else {
		// What only a new CLB could have is compared even when its annotation was removed.
		lb.AddressType, lb.AddressIPVersion = b.decidedValue(annotation.AddressType,
			alicloud.AddressInternet), b.decidedValue(annotation.IPVersion, annotation.FamilyIPv4)
	}
	if lb.ModificationProtection == alicloud.ConsoleProtection {
		lb.ModificationProtectionReason = mark.ProtectionReason
	}
	b.setSpec(&lb)
	if params.AddressType() == alicloud.AddressInternet {
		b.setInternet(&lb)
		lb.VSwitchID = ""
	} else {
		lb.NetworkType = params.Get(annotation.NetworkType)
	}
	lb.Tags = append(lb.Tags, annotation.TagsOf(params)...)
	return lb
}

// decidedValue is the value of an annotation or its default, "" while it is not accepted.
func (b *builder) decidedValue(suffix annotation.Suffix, fallback string) string {
	if b.in.Params.Refused(suffix) {
		return ""
	}
	return b.in.Params.Or(suffix, fallback)
}

// setSpec sets the specification, which only a CLB that pays by it has: by its annotation, else as it is.
func (b *builder) setSpec(lb *alicloud.LoadBalancer) {
	effective := cmp.Or(lb.InstanceChargeType, b.observed.LoadBalancer.InstanceChargeType)
	switch {
	case strings.EqualFold(effective, model.PayBySpec):
		lb.Spec = b.in.Params.Get(annotation.Spec)
	case b.in.Params.Has(annotation.Spec) && !b.in.Params.Reverted[annotation.Spec]:
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s has no effect without %s: %s", annotation.Spec, annotation.InstanceChargeType,
			model.PayBySpec)
	}
}

// managedName is the name that an annotation asks for, or the default one when such an annotation was removed.
func (b *builder) managedName() string {
	if b.in.Params.Reverted[annotation.Name] {
		return b.in.Shared.BalancerName(b.in.Service)
	}
	return b.in.Params.Get(annotation.Name)
}

func (b *builder) setInternet(lb *alicloud.LoadBalancer) {
	lb.InternetChargeType = b.in.Params.Get(annotation.ChargeType)
	if lb.InternetChargeType == model.PayByBandwidth {
		lb.Bandwidth = b.in.Params.Int(annotation.Bandwidth, b.usualBandwidth())
	}
}

// usualBandwidth is the bandwidth where no annotation gives one: what the CLB has if it pays by bandwidth, because its owner may have
// raised it by hand, and the default where that is only switched on.
func (b *builder) usualBandwidth() int {
	if b.observed.LoadBalancer.InternetChargeType == model.PayByBandwidth {
		return b.observed.LoadBalancer.Bandwidth
	}
	return defaultBandwidth
}
