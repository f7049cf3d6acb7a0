package slb

import (
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// defaultBandwidth is the bandwidth in Mbit/s of a CLB that pays by bandwidth where no annotation gives one.
const defaultBandwidth = 50

// loadBalancer fills in the attributes of the CLB: those that annotations manage, and those that a new CLB gets.
func (b *builder) loadBalancer() {
	params, config := b.in.Params, b.in.Config
	b.model.LoadBalancer = b.managedLoadBalancer()
	b.model.RemoveTags, b.model.RemoveDomains = b.in.RemoveTags, b.in.RemoveDomains

	create := b.model.LoadBalancer
	create.AddressType, create.AddressIPVersion, create.NetworkType = params.addressType(), params.Get(IPVersion), ""
	if create.Name == "" {
		create.Name = DefaultName(b.in.Service.UID)
	}
	create.InstanceChargeType = params.or(InstanceChargeType, PayByCLCU)
	create.DeleteProtection = params.or(DeleteProtection, alicloud.ProtectionOn)
	create.ModificationProtection = params.or(ModificationProtection, alicloud.ConsoleProtection)
	if create.ModificationProtection == alicloud.ConsoleProtection {
		create.ModificationProtectionReason = protectionReason
	}
	create.ResourceGroupID = params.or(ResourceGroupID, config.ResourceGroupID)
	if create.InstanceChargeType == PayBySpec && create.Spec == "" {
		create.Spec = DefaultSpec
	}
	b.model.Create = create
	b.network()
	b.checkPlace()
}

// network chooses the vSwitches of a new CLB of address type intranet.
func (b *builder) network() {
	params, config := b.in.Params, b.in.Config
	switch {
	case params.addressType() != alicloud.AddressIntranet:
	case params.Get(NetworkType) == NetworkClassic:
		b.model.VSwitchIDs = []string{""}
	default:
		b.model.Create.VPCID = config.VPCID
		b.model.VSwitchIDs = config.VSwitchIDs
		if params.Has(VSwitchID) {
			b.model.VSwitchIDs = []string{params.Get(VSwitchID)}
		}
	}
}

// checkPlace reports what a new CLB cannot have.
func (b *builder) checkPlace() {
	params := b.in.Params
	if b.in.Exists {
		return // a value that differs from that of the CLB is told as one that cannot change
	}
	for _, suffix := range []Suffix{MasterZoneID, SlaveZoneID} {
		if zone := params.Get(suffix); zone != "" && !strings.HasPrefix(zone, b.in.Config.Region) {
			b.problem(ReasonInvalidAnnotation, "%s: %q is not accepted; accepted: a zone of region %s", suffix, zone, b.in.Config.Region)
		}
	}
	if params.Has(IP) && (params.addressType() != alicloud.AddressIntranet || !params.Has(VSwitchID) || params.Get(IPVersion) == familyIPv6) {
		b.problem(ReasonInvalidAnnotation, "%s (or spec.loadBalancerIP) needs %s: intranet, %s and an IPv4 CLB", IP, AddressType, VSwitchID)
	}
}

func (b *builder) managedLoadBalancer() alicloud.LoadBalancer {
	params := b.in.Params
	lb := alicloud.LoadBalancer{
		Name:                   b.managedName(),
		Address:                params.Get(IP),
		AddressType:            params.Get(AddressType),
		AddressIPVersion:       params.Get(IPVersion),
		VSwitchID:              params.Get(VSwitchID),
		MasterZoneID:           params.Get(MasterZoneID),
		SlaveZoneID:            params.Get(SlaveZoneID),
		ResourceGroupID:        params.Get(ResourceGroupID),
		InstanceChargeType:     params.Get(InstanceChargeType),
		DeleteProtection:       params.Get(DeleteProtection),
		ModificationProtection: params.Get(ModificationProtection),
		Tags:                   ownerTags(b.in.Service, b.in.ClusterID),
	}
	if b.in.Reused {
		lb.Tags = []alicloud.Tag{{Key: tagReused, Value: "true"}}
	} else {
		// What only a new CLB could have is compared even when its annotation was removed.
		lb.AddressType, lb.AddressIPVersion = params.addressType(), params.or(IPVersion, familyIPv4)
	}
	if lb.ModificationProtection == alicloud.ConsoleProtection {
		lb.ModificationProtectionReason = protectionReason
	}
	if strings.EqualFold(lb.InstanceChargeType, PayBySpec) {
		lb.Spec = params.Get(Spec)
	}
	if params.addressType() == alicloud.AddressInternet {
		b.internet(&lb)
		lb.VSwitchID = ""
	} else {
		lb.NetworkType = params.Get(NetworkType)
	}
	lb.Tags = append(lb.Tags, additionalTags(params)...)
	return lb
}

// managedName is the name that an annotation asks for, or the default one when such an annotation was removed.
func (b *builder) managedName() string {
	if b.in.Params.reverted[Name] {
		return DefaultName(b.in.Service.UID)
	}
	return b.in.Params.Get(Name)
}

func (b *builder) internet(lb *alicloud.LoadBalancer) {
	lb.InternetChargeType = b.in.Params.Get(ChargeType)
	if lb.InternetChargeType == PayByBandwidth {
		lb.Bandwidth = b.in.Params.integer(Bandwidth, defaultBandwidth)
	}
}
