package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// accessList makes the list stand and complete before any listener uses it: documents disagree on whether an empty one
// admits everybody or nobody. New entries come before old ones go.
func (d *differ) accessList() {
	want, have := d.desired.Access, d.actual.Access
	if want == nil {
		return
	}
	var present []string
	if have == nil {
		d.addStep(model.Step{Op: model.OpCreateAccess, Target: model.TargetAccess, After: want.Name, Access: *want})
	} else {
		present = have.Entries
	}
	d.entrySteps(model.OpAddEntries, annotation.NotIn(want.Entries, present))
	d.entrySteps(model.OpRemoveEntries, annotation.NotIn(present, want.Entries))
}

func (d *differ) entrySteps(op model.Op, entries []string) {
	for chunk := range slices.Chunk(entries, alicloud.MaxAccessListEntries) {
		step := model.Step{Op: op, Target: model.TargetAccess, Access: alicloud.AccessList{Entries: chunk}}
		if op == model.OpAddEntries {
			step.After = strings.Join(chunk, " ")
		} else {
			step.Before = strings.Join(chunk, " ")
		}
		d.addStep(step)
	}
}

// dropAccessList deletes the list when nothing wants it any more and no listener will refer to it. The cloud may keep the
// reference of a listener whose access control is off, and refuses to delete the list for as long: it goes then with the
// listener.
func (d *differ) dropAccessList() {
	if d.desired.Access != nil || d.actual.Access == nil || !d.managesListeners() {
		return
	}
	if d.desired.InUse.Has(d.actual.Access.ID) {
		d.addProblem(problem.ReasonKeptInUse, "%s", ListInUse(d.actual.Access))
		return
	}
	step := deleteAccessStep(d.actual.Access)
	for i := range d.actual.Listeners {
		if !model.UsesAccessList(&d.actual.Listeners[i], d.actual.Access) {
			continue
		}
		target := model.TargetListener(d.actual.Listeners[i].ListenerKey)
		if !slices.ContainsFunc(d.plan.Steps, func(s model.Step) bool {
			return s.Op == model.OpDeleteListener && s.Target == target || s.Replaced == &d.actual.Listeners[i]
		}) {
			return
		}
		step.Needs = append(step.Needs, target)
	}
	d.addStep(step)
}

// ListInUse says that an access control list stays because somebody else uses it.
func ListInUse(list *alicloud.AccessList) string {
	return fmt.Sprintf("access control list %s (%s), which holds the source ranges of this Service, stays: the cloud says that a listener which is not this Service's uses it; once nothing does, delete the list",
		list.ID, list.Name)
}

func deleteAccessStep(list *alicloud.AccessList) model.Step {
	return model.Step{Op: model.OpDeleteAccess, Target: model.TargetAccess, Before: list.ID, Access: *list}
}

// listenerAttributes are the attributes that a listener is to have: with the id of the list, or without the list where
// that is to go.
func (d *differ) listenerAttributes(want, have *model.Listener) alicloud.Attributes {
	attributes := model.WithAccessList(want.Attributes, d.actual.Access)
	if attributes[alicloud.AttributeACLStatus] != "" || d.desired.Access != nil || d.desired.KeepAccess ||
		have.Attributes[alicloud.AttributeACLStatus] != "on" || !model.UsesAccessList(have, d.actual.Access) {
		return attributes
	}
	open := alicloud.Attributes{alicloud.AttributeACLStatus: "off"}
	maps.Copy(open, attributes)
	return open
}
