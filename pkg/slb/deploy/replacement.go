package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// replacePause is how long a replacement is not tried again that the cloud refused. Each attempt takes the port down for the time of four
// calls; an edit of the Service has it made at once.
var replacePause = refusal.Pause{Least: time.Hour, Longest: waits.Replaced}

// vacancy is a port whose listener was deleted to make room for another one. UDP has ports of its own, and its listeners are never
// replaced.
type vacancy struct {
	loadBalancerID string
	port           int
}

// replacement is a listener that is to take the place of another one.
type replacement struct {
	vacancy
	wanted string
}

// remembered is the refusal of a replacement that was not tried again.
type remembered struct{ error }

func (e remembered) Unwrap() error { return e.error }

func (a *Applier) vacancyOf(key alicloud.ListenerKey) vacancy {
	if key.Protocol == alicloud.ProtocolUDP {
		return vacancy{}
	}
	return vacancy{a.model.LoadBalancer.ID, key.Port}
}

func (a *Applier) replacementFor(wanted alicloud.Listener) replacement {
	return replacement{a.vacancyOf(wanted.ListenerKey), fmt.Sprintf("%s %s %s", wanted.ListenerKey, wanted.VServerGroupID, wanted.Attributes)}
}

// replaceListener deletes a listener, and creates and starts another one on its port. The cloud has no call for both, so that nothing
// serves the port in between: everything that the creation needs is there before the deletion, also its place under the rate limit. One
// that is refused all the same leaves the old listener as it was.
func (a *Applier) replaceListener(ctx context.Context, step model.Step) error {
	wanted, err := a.resolveListener(step)
	if err != nil {
		return err
	}
	if err = a.memory.replacements.Err(a.replacementFor(wanted), time.Now()); err != nil {
		return remembered{err}
	}
	old := *step.Replaced
	if err = a.emptyGroup(step, old.GroupID); err != nil {
		return err
	}
	if ctx, err = a.api.ReserveReplacement(ctx, old.ListenerKey, wanted.ListenerKey); err != nil {
		return err
	}
	if err = a.deleteListener(ctx, model.Step{Listener: alicloud.Listener{ListenerKey: old.ListenerKey}}); err != nil {
		return err
	}
	a.memory.noteVacated(a.vacancyOf(old.ListenerKey), old)
	ctx = alicloud.WithWaiting(ctx, urgentWait(alicloud.WaitingOf(ctx)))
	if err = a.createListener(ctx, step); err != nil {
		return err
	}
	return a.startListener(ctx, model.Step{Listener: wanted})
}

// portIsVacant reports whether a step is to bring back a port that this process took down.
func (a *Applier) portIsVacant(step model.Step) bool {
	if step.Op != model.OpCreateListener && step.Op != model.OpStartListener {
		return false
	}
	_, vacant := a.memory.vacatedListener(a.vacancyOf(step.Listener.ListenerKey))
	return vacant
}

// urgentWait has a call go first, and to its end: nothing serves its port.
func urgentWait(waiting alicloud.Waiting) alicloud.Waiting {
	waiting.Priority, waiting.Interrupt = alicloud.PriorityRemoval, nil
	return waiting
}

// putBack creates the listener again that was deleted to make room for one that the cloud refuses. It returns the refusal.
func (a *Applier) putBack(ctx context.Context, wanted alicloud.Listener, refused error) error {
	place := a.vacancyOf(wanted.ListenerKey)
	old, vacant := a.memory.vacatedListener(place)
	if !vacant || old == nil || !refusesListener(refused) {
		return refused
	}
	listener := old.Restored()
	if err := a.callOnce(ctx, func() error { return a.api.CreateListener(ctx, place.loadBalancerID, listener) }); err != nil {
		return errors.Join(refused, fmt.Errorf("restore listener %s: %w", old.ListenerKey, err))
	}
	if !alicloud.IsThrottled(refused) { // that has its own time
		a.memory.replacements.Add(a.replacementFor(wanted), refused, replacePause, time.Now())
	}
	a.memory.noteOccupied(place, false)
	a.noteListener(listener)
	for _, extension := range old.Extensions {
		a.followUp = append(a.followUp, model.Step{
			Op: model.OpCreateExtension, Target: model.TargetListener(old.ListenerKey) + " " + extension.Domain, After: extension.CertificateID,
			Listener: alicloud.Listener{ListenerKey: old.ListenerKey}, Extension: extension,
		})
	}
	if err := a.startListener(ctx, model.Step{Listener: listener}); err != nil {
		return errors.Join(refused, fmt.Errorf("start listener %s again: %w", old.ListenerKey, err))
	}
	return fmt.Errorf("%w; listener %s stays in its place", refused, old.ListenerKey)
}

// refusesListener reports whether the cloud refused to create a listener and will for a while.
func refusesListener(err error) bool {
	var refused *alicloud.Error
	return errors.As(err, &refused) && refused.Code != "" && !alicloud.IsAmbiguous(err) && !alicloud.IsBusy(err) &&
		!alicloud.HasCode(err, model.CodeLoadBalancerGone)
}

// noteVacated notes that the listener of a port was deleted, and what it was.
func (m *Memory) noteVacated(place vacancy, old model.Listener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vacancies == nil {
		m.vacancies = map[vacancy]*model.Listener{}
	}
	m.vacancies[place] = &old
}

// vacatedListener reports whether nothing serves a port because its listener was deleted to make room for another one. The listener is nil
// once there is one, which only has to be started.
func (m *Memory) vacatedListener(place vacancy) (*model.Listener, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.vacancies[place]
	return old, ok
}

// noteOccupied notes that a port has a listener again, and whether it serves.
func (m *Memory) noteOccupied(place vacancy, serves bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, vacant := m.vacancies[place]; !vacant {
		return
	}
	if m.vacancies[place] = nil; serves {
		delete(m.vacancies, place)
	}
}
