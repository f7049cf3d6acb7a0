package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// attributeSteps makes the steps on the CLB itself.
func (d *differ) attributeSteps() {
	want, have := &d.desired.LoadBalancer, &d.actual.LoadBalancer
	if !d.managesListeners() {
		return // its owner's, like the listeners
	}
	d.setValue(model.OpSetName, want.Name, have.Name)
	d.setValue(model.OpSetProtection, want.DeleteProtection, have.DeleteProtection)
	d.setValue(model.OpSetModification, want.ModificationProtection, have.ModificationProtection)
	d.chargeSteps(want, have)
	if !d.desired.Reused {
		d.tagSteps(want.Tags, have)
	}
	d.reportImmutable(want, have)
}

// setValue adds a step for a value that is managed and differs.
func (d *differ) setValue(op model.Op, want, have string) {
	if want != "" && want != have {
		d.addStep(model.Step{Op: op, Target: model.TargetLoadBalancer, Before: have, After: want, LoadBalancer: d.desired.LoadBalancer})
	}
}

func (d *differ) chargeSteps(want, have *alicloud.LoadBalancer) {
	switch {
	case have.InstanceChargeType == "":
		// Not every answer has the charge type: unknown is no difference.
	case want.InstanceChargeType == "", strings.EqualFold(want.InstanceChargeType, have.InstanceChargeType):
		if strings.EqualFold(have.InstanceChargeType, model.PayBySpec) {
			d.setValue(model.OpSetSpec, want.Spec, have.Spec)
		}
	case strings.EqualFold(want.InstanceChargeType, model.PayBySpec):
		d.addProblem(problem.ReasonImmutableAttribute, "%s cannot change from %s to %s", annotation.InstanceChargeType, have.InstanceChargeType,
			want.InstanceChargeType)
	default:
		d.setValue(model.OpSetCharge, want.InstanceChargeType, have.InstanceChargeType)
	}
	if want.InternetChargeType == "" || have.AddressType == alicloud.AddressIntranet {
		return
	}
	wantText, haveText := internetText(want), internetText(have)
	if wantText != haveText {
		d.setValue(model.OpSetInternet, wantText, haveText)
	}
}

// internetText: the bandwidth counts with paybybandwidth only.
func internetText(lb *alicloud.LoadBalancer) string {
	if lb.InternetChargeType != model.PayByBandwidth {
		return lb.InternetChargeType
	}
	return fmt.Sprintf("%s %d Mbit/s", lb.InternetChargeType, lb.Bandwidth)
}

// tagSteps adds the tags that are missing or differ, and removes those that left the annotation. Tags of others stay; what they leave no
// room for is not set, because a CLB serves without our tags, too.
func (d *differ) tagSteps(want []alicloud.Tag, have *alicloud.LoadBalancer) {
	var missing []alicloud.Tag
	var texts, left []string
	gone := d.tagsToRemove(want)
	room := annotation.MaxTags - len(have.Tags) + len(presentTags(have, gone))
	for _, tag := range want {
		value, ok := have.Tag(tag.Key)
		switch {
		case ok && value == tag.Value:
			continue
		case !ok && room <= 0:
			left = append(left, tag.Key)
			continue
		case !ok:
			room--
		}
		missing = append(missing, tag)
		texts = append(texts, tag.Key+"="+tag.Value)
	}
	if len(left) > 0 {
		d.addProblem(problem.ReasonAnnotationNoEffect, "tags %s are not set: CLB %s has the %d tags that a resource can have",
			strings.Join(left, ", "), have.ID, annotation.MaxTags)
	}
	if len(gone) > 0 {
		d.addStep(model.Step{Op: model.OpUntag, Target: model.TargetLoadBalancer, Before: strings.Join(gone, " "), TagKeys: gone})
	}
	if len(missing) > 0 {
		d.addStep(model.Step{
			Op: model.OpTag, Target: model.TargetLoadBalancer, After: strings.Join(texts, " "), LoadBalancer: alicloud.LoadBalancer{Tags: missing},
		})
	}
}

// tagsToRemove returns the keys of tags that left the annotation. An answer that lacks one proves nothing: it may be older than the tag,
// which would stay for good, because nothing records it any more.
func (d *differ) tagsToRemove(want []alicloud.Tag) []string {
	return slices.DeleteFunc(slices.Clone(d.desired.RemoveTags), func(key string) bool {
		return annotation.ReservedTags.Has(key) || slices.ContainsFunc(want, func(tag alicloud.Tag) bool { return tag.Key == key })
	})
}

// presentTags returns those of the keys that the CLB has a tag of.
func presentTags(lb *alicloud.LoadBalancer, keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		_, ok := lb.Tag(key)
		return !ok
	})
}

// reportImmutable reports what only a new CLB could have.
func (d *differ) reportImmutable(want, have *alicloud.LoadBalancer) {
	for _, field := range []struct {
		suffix     annotation.Suffix
		want, have string
	}{
		{annotation.AddressType, want.AddressType, have.AddressType},
		{annotation.IPVersion, want.AddressIPVersion, have.AddressIPVersion},
		{annotation.VSwitchID, want.VSwitchID, have.VSwitchID},
		{annotation.NetworkType, want.NetworkType, have.NetworkType},
		{annotation.IP, want.Address, have.Address},
		{annotation.MasterZoneID, want.MasterZoneID, have.MasterZoneID},
		{annotation.SlaveZoneID, want.SlaveZoneID, have.SlaveZoneID},
		{annotation.ResourceGroupID, want.ResourceGroupID, have.ResourceGroupID},
	} {
		if field.want != "" && field.have != "" && field.want != field.have {
			d.addProblem(problem.ReasonImmutableAttribute, "%s cannot change from %s to %s; only a new CLB can have the new value", field.suffix,
				field.have, field.want)
		}
	}
}
