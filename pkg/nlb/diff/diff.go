package diff

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

type differ struct {
	desired, actual *model.Model
	owner           mark.Owner
	plan            model.Plan
	// used are the ids of groups that stand for desired ones.
	used map[string]bool
	// changes are how the servers of the desired groups differ, in their order.
	changes []serverChange
}

// Diff returns the plan from one model to another. What is there is added to before anything is taken away that may take traffic, so that
// no moment of it is worse than the one before. What carries traffic comes before settings: the job of a setting that fails each time would
// keep it waiting.
func Diff(desired, actual *model.Model, owner mark.Owner) model.Plan {
	if actual == nil {
		actual = &model.Model{}
	}
	d := &differ{desired: desired, actual: actual, owner: owner, used: map[string]bool{}}
	if actual.LoadBalancer.ID == "" &&
		(desired.HoldCreation || !slices.ContainsFunc(desired.Listeners, func(l model.Listener) bool { return l.Blocked == "" })) {
		return d.plan
	}
	d.compareGroups()
	d.clearGroups()
	d.openAccess()
	d.createLoadBalancer()
	d.fillGroups()
	d.listenerSteps()
	d.closeAccess()
	d.emptyGroups()
	d.changeLoadBalancer()
	d.updateGroups()
	return d.plan
}

func (d *differ) addStep(s model.Step) { d.plan.Steps = append(d.plan.Steps, s) }

func (d *differ) addProblem(reason, format string, args ...any) {
	d.plan.Problems = append(d.plan.Problems, problem.Newf(reason, format, args...))
}

func (d *differ) createLoadBalancer() {
	if d.actual.LoadBalancer.ID != "" {
		return
	}
	s := model.Step{Op: model.OpCreateLoadBalancer, Target: model.TargetLoadBalancer, After: d.desired.LoadBalancer.Name,
		LoadBalancer: d.desired.LoadBalancer}
	if d.desired.Access != nil {
		s.Needs = []string{model.TargetAccess}
	}
	d.addStep(s)
}

// changeLoadBalancer makes the steps on the load balancer itself, those first that take no job. A bandwidth package is only for one that
// faces the internet: it is left before the address type changes, and joined after that.
func (d *differ) changeLoadBalancer() {
	have, want := &d.actual.LoadBalancer, &d.desired.Want
	if have.ID == "" {
		d.setAttributes(have, want)
		return
	}
	d.protectionSteps(have, want)
	d.tagSteps(have, want)
	set := func(op model.Op, before, after string, wanted model.Want) {
		d.addStep(model.Step{Op: op, Target: model.TargetLoadBalancer, Before: before, After: after, Want: wanted,
			LoadBalancer: d.desired.LoadBalancer})
	}
	if want.IPv6AddressType != nil && !strings.EqualFold(*want.IPv6AddressType, have.IPv6AddressType) {
		set(model.OpSetIPv6, have.IPv6AddressType, *want.IPv6AddressType, model.Want{IPv6AddressType: want.IPv6AddressType})
	}
	d.setAttributes(have, want)
	changesPackage := differs(want.BandwidthPackage, &have.BandwidthPackageID)
	if changesPackage && have.BandwidthPackageID != "" {
		set(model.OpDetach, have.BandwidthPackageID, "", model.Want{BandwidthPackage: &have.BandwidthPackageID})
	}
	if differs(want.AddressType, &have.AddressType) {
		set(model.OpSetAddressType, have.AddressType, *want.AddressType, model.Want{AddressType: want.AddressType})
	}
	if changesPackage && *want.BandwidthPackage != "" {
		set(model.OpAttach, "", *want.BandwidthPackage, model.Want{BandwidthPackage: want.BandwidthPackage})
	}
	if want.Zones != nil {
		set(model.OpSetZones, zonesText(have.Zones), zonesText(want.Zones), model.Want{Zones: want.Zones})
	}
}

// setAttributes also follows the creation, which takes no cross-zone setting.
func (d *differ) setAttributes(have *alicloud.NLB, want *model.Want) {
	isNew := have.ID == ""
	var changes model.Want
	var before, after []string
	if !isNew && differs(want.Name, &have.Name) {
		changes.Name = want.Name
		before, after = append(before, "name="+have.Name), append(after, "name="+*want.Name)
	}
	if want.CrossZone != nil && (isNew && !*want.CrossZone || !isNew && *want.CrossZone != have.CrossZone) {
		changes.CrossZone = want.CrossZone
		before, after = append(before, "crossZone="+onOff(!*want.CrossZone)), append(after, "crossZone="+onOff(*want.CrossZone))
	}
	if len(after) > 0 {
		d.addStep(model.Step{Op: model.OpSetAttributes, Target: model.TargetLoadBalancer, Before: strings.Join(before, " "),
			After: strings.Join(after, " "), Want: changes})
	}
	if isNew && want.IPv6AddressType != nil && *want.IPv6AddressType == alicloud.NLBInternet {
		d.addStep(model.Step{Op: model.OpSetIPv6, Target: model.TargetLoadBalancer, After: *want.IPv6AddressType,
			Want: model.Want{IPv6AddressType: want.IPv6AddressType}})
	}
}

func (d *differ) protectionSteps(have *alicloud.NLB, want *model.Want) {
	var changes model.Want
	var after []string
	if differs(want.DeleteProtection, &have.DeletionProtection) {
		changes.DeleteProtection = want.DeleteProtection
		after = append(after, "deletion="+onOff(*want.DeleteProtection))
	}
	if differs(want.Modification, &have.ModificationProtection) {
		changes.Modification = want.Modification
		after = append(after, "modification="+*want.Modification)
	}
	if len(after) > 0 {
		d.addStep(model.Step{Op: model.OpSetProtection, Target: model.TargetLoadBalancer, After: strings.Join(after, " "), Want: changes})
	}
}

func (d *differ) tagSteps(have *alicloud.NLB, want *model.Want) {
	var tags []alicloud.Tag
	for _, tag := range slices.Concat(want.Ownership, want.Tags) {
		if value, ok := have.Tag(tag.Key); !ok || value != tag.Value {
			tags = append(tags, tag)
		}
	}
	if len(tags) > 0 {
		d.addStep(model.Step{Op: model.OpTag, Target: model.TargetLoadBalancer, After: mark.TagsText(tags), Tags: tags})
	}
	keys := slices.DeleteFunc(slices.Clone(want.RemoveTags), func(key string) bool {
		_, ok := have.Tag(key)
		return !ok
	})
	if len(keys) > 0 {
		d.addStep(model.Step{Op: model.OpUntag, Target: model.TargetLoadBalancer, Before: strings.Join(keys, " "), IDs: keys})
	}
}
