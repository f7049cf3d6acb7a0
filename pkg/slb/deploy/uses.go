package deploy

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// inUseCodes are the codes with which the cloud refuses to delete a vServer group or an access control list that something uses, or did a
// moment ago.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes.
var inUseCodes = []string{"RspoolVipExist", "OperationFailed.AclBindedWithVip", "AclInUsed"}

const (
	// useGrace is how long what a listener of ours has just left may count as used. What is used for longer is used by somebody else, who may
	// go on for ever.
	useGrace = waits.InUse
	// useRetry is after what time somebody else may have stopped using it, which causes no event.
	useRetry = 6 * time.Hour
)

// use is since when the cloud has refused to delete something because it is used, when it last did, and how.
type use struct {
	since, last time.Time
	err         error
}

// used returns why the cloud does not delete a group or a list, nil where it is to be tried: ever more seldom.
func (m *Memory) used(id string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.uses[id]
	if !ok || 2*now.Sub(known.last) >= now.Sub(known.since) || now.Sub(known.last) >= useRetry { //nolint:mnd // half of the time
		return nil
	}
	return remembered{known.err}
}

// noteUse notes how the deletion of a group or a list ended.
func (m *Memory) noteUse(id string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, was := m.uses[id]
	switch {
	case !alicloud.HasCode(err, inUseCodes...):
		if err == nil || alicloud.IsNotFound(err) {
			delete(m.uses, id)
		}
		return
	case m.uses == nil:
		m.uses = map[string]use{}
	}
	if !was {
		known.since = now
	}
	known.last, known.err = now, err
	m.uses[id] = known
}

// InUse reports whether the cloud does not delete a group or a list because somebody else uses it. It is then left as it is, but for what
// is ours in it.
func (m *Memory) InUse(id string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.uses[id]
	return ok && now.Sub(known.since) >= useGrace && now.Sub(known.last) < useRetry
}
