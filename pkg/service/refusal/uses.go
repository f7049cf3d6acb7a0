package refusal

import (
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// use is since when the cloud has refused to delete something because it is used, when it last did, and how.
type use struct {
	since, last time.Time
	err         error
}

// Uses are things that the cloud does not delete, most often because something uses them, by id. The zero value is empty; several
// goroutines may use it.
type Uses struct {
	mu   sync.Mutex // guards byID
	byID map[string]use
}

// Err returns why the cloud does not delete a thing, nil where it is to be tried: ever more seldom.
func (u *Uses) Err(id string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	known, ok := u.byID[id]
	if !ok || 2*now.Sub(known.last) >= now.Sub(known.since) || now.Sub(known.last) >= waits.Replaced { //nolint:mnd // half of the time
		return nil
	}
	return known.err
}

// Note notes how a deletion ended. stays says that the cloud refuses it for sure: something uses the thing, or the role may not delete it.
func (u *Uses) Note(id string, err error, stays bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !stays {
		if err == nil || alicloud.IsNotFound(err) {
			delete(u.byID, id)
		}
		return
	}
	if u.byID == nil {
		u.byID = map[string]use{}
	}
	known, was := u.byID[id]
	if !was {
		known.since = now
	}
	known.last, known.err = now, err
	u.byID[id] = known
}

// Left returns why a thing is left as it is, but for what is ours in it, since the cloud has not deleted it for a while; nil where it is
// not.
func (u *Uses) Left(id string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	known, ok := u.byID[id]
	if !ok || now.Sub(known.since) < waits.InUse || now.Sub(known.last) >= waits.Replaced {
		return nil
	}
	return known.err
}
