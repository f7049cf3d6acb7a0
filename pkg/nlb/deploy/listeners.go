package deploy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// groupID returns the id of the group of a listener: the model knows it, also where this plan created it.
func (a *Applier) groupID(listener *model.Listener, given *string) (*string, error) {
	if given != nil && *given != "" {
		return given, nil
	}
	for _, v := range slices.Backward(a.Model.Groups) { // the newest of two with one name
		if v.Name == listener.Group {
			id := v.ID
			return &id, nil
		}
	}
	return nil, fmt.Errorf("server group %s does not exist", listener.Group)
}

// listenerOf is the listener of a step in the model, nil where it is not known.
func (a *Applier) listenerOf(step *model.Step) *model.Listener {
	for i := range a.Model.Listeners {
		if a.Model.Listeners[i].Key() == step.Target {
			return &a.Model.Listeners[i]
		}
	}
	return nil
}

func (a *Applier) createListener(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	l := step.Listener
	l.LoadBalancerID = a.Model.LoadBalancer.ID
	var err error
	if l.ServerGroupID, err = a.groupID(&l, l.ServerGroupID); err != nil {
		return "", err
	}
	job, err := a.startJob(func() (alicloud.Job, error) {
		id, job, refused := a.API.CreateNLBListener(ctx, l.NLBListener, rand.Text())
		if refused == nil {
			l.ID, l.Status, l.Certificates, l.RemoveCertificates = id, alicloud.NLBListenerRunning, nil, nil
			a.Model.Listeners = append(a.Model.Listeners, l)
		}
		return job, refused
	})
	a.noteCrowded(a.Model.GroupByID(model.Text(l.ServerGroupID)), err)
	if _, crowded := a.Memory.Crowded(model.Text(l.ServerGroupID)); refusesListener(err) && !crowded {
		return a.putBack(ctx, &step.Listener, err)
	}
	return job, err
}

// emptyGroup returns why a listener stays in the group that it uses: the next one is to have servers and has none yet, and those of the
// old one take traffic.
func (a *Applier) emptyGroup(step *model.Step) error {
	old := a.Model.GroupByID(step.From)
	if !step.Awaits || old == nil || !old.Serves() {
		return nil
	}
	next, err := a.groupOf(step)
	if err != nil || next == old || next.Serves() {
		return err
	}
	return &problem.WaitError{Reason: fmt.Sprintf("it keeps using server group %s, because %s has no servers yet", old.ID, next.ID),
		For: staysFor}
}

// staysFor is when the next pass is that tries to fill an empty group, if nothing else causes one.
const staysFor = time.Minute

func (a *Applier) updateListener(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	changes := step.Changes
	stays := a.emptyGroup(step)
	if stays != nil {
		if changes.ServerGroupID = nil; isNone(changes) {
			return "", stays
		}
	}
	if changes.ServerGroupID != nil {
		var err error
		if changes.ServerGroupID, err = a.groupID(&step.Listener, changes.ServerGroupID); err != nil {
			return "", err
		}
	}
	job, err := a.setListener(ctx, step, changes)
	if parts := oneByOne(changes); refusesListener(err) && len(parts) > 1 {
		job, err = a.setParts(ctx, step, parts, err)
	}
	return job, cmp.Or(err, stays)
}

func (a *Applier) setListener(ctx context.Context, step *model.Step, changes alicloud.NLBListenerSettings) (alicloud.Job, error) {
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.UpdateNLBListener(ctx, step.Listener.ID, changes) })
	a.noteMove(step.From, a.Model.GroupByID(model.Text(changes.ServerGroupID)), err)
	if have := a.listenerOf(step); err == nil && have != nil {
		mergeListener(&have.NLBListenerSettings, &changes)
	}
	return job, err
}

// setParts makes the first of the changes that the cloud takes, after it refused all of them together: one setting that it does not take
// keeps no listener in a group that nothing serves any more, nor at a certificate that expires. The next pass makes the others. It returns
// the refusal.
func (a *Applier) setParts(
	ctx context.Context, step *model.Step, parts []alicloud.NLBListenerSettings, refused error,
) (alicloud.Job, error) {
	for _, part := range parts {
		if part.ServerGroupID != nil && alicloud.IsQuota(refused) {
			continue // that is about the group
		}
		if job, err := a.setListener(ctx, step, part); err == nil {
			return job, known{refused}
		} else if !refusesListener(err) {
			return "", errors.Join(refused, err)
		}
	}
	return "", refused
}

// oneByOne takes changes of a listener apart, those first without which it does not serve.
func oneByOne(changes alicloud.NLBListenerSettings) []alicloud.NLBListenerSettings {
	group, certificate := alicloud.NLBListenerSettings{ServerGroupID: changes.ServerGroupID}, alicloud.NLBListenerSettings{CertificateIDs: changes.CertificateIDs}
	changes.ServerGroupID, changes.CertificateIDs = nil, nil
	return slices.DeleteFunc([]alicloud.NLBListenerSettings{group, certificate, changes}, isNone)
}

func isNone(changes alicloud.NLBListenerSettings) bool { return reflect.ValueOf(changes).IsZero() }

// withoutMove returns what else a step changes of a listener that cannot leave its group, nil for nothing: its certificate needs no group.
func withoutMove(step *model.Step) *model.Step {
	if step.Op != model.OpUpdateListener || step.Changes.ServerGroupID == nil {
		return nil
	}
	rest := *step
	rest.Needs, rest.From, rest.Awaits, rest.Meanwhile, rest.Changes.ServerGroupID = nil, "", false, nil, nil
	if isNone(rest.Changes) {
		return nil
	}
	return &rest
}

// mergeListener takes over the settings that are given.
func mergeListener(into, changes *alicloud.NLBListenerSettings) {
	takeValue(&into.Description, changes.Description)
	takeValue(&into.ServerGroupID, changes.ServerGroupID)
	takeValue(&into.IdleTimeout, changes.IdleTimeout)
	takeValue(&into.Cps, changes.Cps)
	takeValue(&into.ProxyProtocol, changes.ProxyProtocol)
	takeValue(&into.ProxyProtocolV2, changes.ProxyProtocolV2)
	takeValue(&into.SecurityPolicyID, changes.SecurityPolicyID)
	takeValue(&into.CAEnabled, changes.CAEnabled)
	takeValue(&into.ALPNEnabled, changes.ALPNEnabled)
	takeValue(&into.ALPNPolicy, changes.ALPNPolicy)
	takeList(&into.CertificateIDs, changes.CertificateIDs)
	takeList(&into.CACertificateIDs, changes.CACertificateIDs)
}

func takeValue[T any](into **T, value *T) {
	if value != nil {
		*into = value
	}
}

func takeList(into *[]string, values []string) {
	if len(values) > 0 {
		*into = values
	}
}

func (a *Applier) startListener(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.StartNLBListener(ctx, step.Listener.ID) })
	if have := a.listenerOf(step); err == nil && have != nil {
		have.Status = alicloud.NLBListenerRunning
	}
	return job, err
}

// deleteListener takes the listener as gone that does not exist.
func (a *Applier) deleteListener(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	if stays := a.emptyGroup(step); stays != nil {
		return "", stays
	}
	if step.Successor != nil {
		if err := a.mayReplace(ctx, step.Successor); err != nil {
			return "", err
		}
	}
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.DeleteNLBListener(ctx, step.Listener.ID) })
	if alicloud.IsNotFound(err) {
		job, err = "", nil
	}
	if err == nil {
		if step.Successor != nil {
			a.Memory.vacancies.addVacancy(a.Model.LoadBalancer.ID, step.Listener)
		}
		a.Model.Listeners = slices.DeleteFunc(a.Model.Listeners, func(l model.Listener) bool { return l.ID == step.Listener.ID })
	}
	return job, err
}

func (a *Applier) addCertificates(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	have := a.listenerOf(step)
	if have == nil {
		return "", fmt.Errorf("listener %s does not exist", step.Target)
	}
	ids := step.IDs[:min(len(step.IDs), alicloud.MaxCertificatesPerCall)]
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.AddCertificates(ctx, have.ID, ids) })
	if err == nil {
		have.Certificates = append(slices.Clone(have.Certificates), ids...)
		a.Waits = a.Waits || len(ids) < len(step.IDs)
	}
	return job, err
}

func (a *Applier) removeCertificates(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	have := a.listenerOf(step)
	if have == nil {
		return "", nil
	}
	ids := step.IDs[:min(len(step.IDs), alicloud.MaxCertificatesPerCall)]
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.RemoveCertificates(ctx, have.ID, ids) })
	if err == nil {
		have.Certificates = slices.DeleteFunc(slices.Clone(have.Certificates), func(id string) bool { return slices.Contains(ids, id) })
		a.Waits = a.Waits || len(ids) < len(step.IDs)
	}
	return job, err
}
