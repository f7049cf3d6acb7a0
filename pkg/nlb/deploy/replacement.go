package deploy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// replacePause is how long a replacement is not tried again that the cloud refused. Each attempt may take the port down for the time of
// three jobs.
var replacePause = refusal.Pause{First: time.Minute, Least: 2 * time.Minute, Longest: waits.Refused}

// known is a refusal after which it is known what is there: it was remembered and no call made, or another call in its place was accepted.
type known struct{ error }

func (e known) Unwrap() error { return e.error }

// vacancies are listeners that were deleted to make room for others, by load balancer. The zero value is empty.
type vacancies struct {
	mu  sync.Mutex // guards old
	old map[string][]model.Listener
}

func (v *vacancies) addVacancy(lb string, old model.Listener) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.old == nil {
		v.old = map[string][]model.Listener{}
	}
	v.old[lb] = append(v.old[lb], old)
}

// dropFunc forgets listeners whose ports have one again.
func (v *vacancies) dropFunc(lb string, serves func(*model.Listener) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(v.old[lb]), func(l model.Listener) bool { return serves(&l) })
	if delete(v.old, lb); len(rest) > 0 {
		v.old[lb] = rest
	}
}

// findVacancy returns one of the listeners.
func (v *vacancies) findVacancy(lb string, is func(*model.Listener) bool) (model.Listener, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.old[lb] {
		if is(&v.old[lb][i]) {
			return v.old[lb][i], true
		}
	}
	return model.Listener{}, false
}

// forgetOccupied forgets the vacancies of ports that have a listener again.
func (a *Applier) forgetOccupied() {
	a.Memory.vacancies.dropFunc(a.Model.LoadBalancer.ID, func(old *model.Listener) bool {
		return slices.ContainsFunc(a.Model.Listeners, func(l model.Listener) bool {
			return l.Overlaps(old) && !a.Busy(model.TargetListener(l.Key()))
		})
	})
}

// vacatedListener returns the listener that was deleted to make room for a wanted one.
func (a *Applier) vacatedListener(wanted *model.Listener) (model.Listener, bool) {
	return a.Memory.vacancies.findVacancy(a.Model.LoadBalancer.ID, func(old *model.Listener) bool { return old.Overlaps(wanted) })
}

// standsBy reports whether a group is that of a listener that may be put back.
func (a *Applier) standsBy(group string) bool {
	_, ok := a.Memory.vacancies.findVacancy(a.Model.LoadBalancer.ID, func(old *model.Listener) bool {
		return model.Text(old.ServerGroupID) == group
	})
	return ok
}

// replacementName names what is to take the place of a listener.
func (a *Applier) replacementName(wanted *model.Listener) string {
	l := wanted.NLBListener
	l.ID, l.LoadBalancerID, l.Status, l.ServerGroupID = "", "", "", nil
	text, err := json.Marshal(l)
	if err != nil {
		return wanted.Key() // it is plain data
	}
	return a.Model.LoadBalancer.ID + " " + wanted.Group + " " + string(text)
}

// mayReplace tries whether the cloud takes the listener for which another one is to be deleted: there is no call for both, so nothing
// serves the port in between. That the port is in use, or the quota of listeners used up, is no reason: the other one goes.
func (a *Applier) mayReplace(ctx context.Context, successor *model.Listener) error {
	if err := a.Memory.replacements.Err(a.replacementName(successor), time.Now()); err != nil {
		return known{err}
	}
	l := *successor
	l.LoadBalancerID = a.Model.LoadBalancer.ID
	var err error
	if l.ServerGroupID, err = a.groupID(&l, l.ServerGroupID); err != nil {
		return err
	}
	switch err = a.API.TryNLBListener(ctx, l.NLBListener); {
	case err == nil, alicloud.IsDuplicate(err), alicloud.IsQuota(err):
		return nil
	case refusesListener(err):
		a.Memory.replacements.Add(a.replacementName(successor), err, replacePause, time.Now())
	}
	return fmt.Errorf("%w; the listener in its place stays", err)
}

// putBack creates the listener again that was deleted to make room for one that the cloud refuses. It returns the refusal.
func (a *Applier) putBack(ctx context.Context, wanted *model.Listener, refused error) (alicloud.Job, error) {
	old, vacant := a.vacatedListener(wanted)
	if !vacant {
		return "", refused
	}
	l := old
	l.ID, l.LoadBalancerID, l.Certificates = "", a.Model.LoadBalancer.ID, nil
	job, err := a.startJob(func() (alicloud.Job, error) {
		id, job, err := a.API.CreateNLBListener(ctx, l.NLBListener, rand.Text())
		if err == nil {
			l.ID, l.Status = id, alicloud.NLBListenerRunning
			a.Model.Listeners = append(a.Model.Listeners, l)
		}
		return job, err
	})
	if err != nil {
		return "", errors.Join(refused, fmt.Errorf("restore the %s listener %s: %w", old.Protocol, old.Ports(), err))
	}
	a.Memory.replacements.Add(a.replacementName(wanted), refused, replacePause, time.Now())
	return job, known{fmt.Errorf("%w; the %s listener %s stays in its place", refused, old.Protocol, old.Ports())}
}

// refusesListener reports whether the cloud refused a listener, and will for a while: for what it asks, or for what it names, such as a
// certificate that does not exist.
func refusesListener(err error) bool {
	return isRefusal(err) || alicloud.IsNotFound(err) && !alicloud.IsNLBNotFound(err)
}
