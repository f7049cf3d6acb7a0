package node

import (
	"context"
	"errors"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// errRefusedID says that ECS refuses every call that names the instance id. Whether it does so for malformed ids is not documented.
// Provider IDs come from kubelets: one of them must not keep the instances of all others from being read.
var errRefusedID = errors.New("ECS refuses the instance id")

const (
	// isolationCalls bounds the search for the id that a call was refused for: enough to find one among a hundred.
	isolationCalls = 16
	// isolationPause is how long after a search none is made: a call that is refused for another reason must not cost many.
	isolationPause = time.Minute
	// refusedAge is how long a refused id is not named in any call.
	refusedAge = time.Hour
)

// refusesParameters reports whether a call was refused for what it asks, and not for who asks, when, or how often.
func refusesParameters(err error) bool {
	var refusal *alicloud.Error
	return errors.As(err, &refusal) && !alicloud.IsThrottled(err) && !alicloud.IsBusy(err) && !alicloud.IsAuth(err) &&
		!alicloud.IsForbidden(err) && !alicloud.IsQuota(err) && !alicloud.IsAmbiguous(err)
}

// readByID reads the instances, without those whose ids make ECS refuse the call.
func (s *snapshot) readByID(ctx context.Context, ids []string) ([]alicloud.Instance, error) {
	instances, err := s.read(ctx, alicloud.InstanceQuery{IDs: ids})
	if !refusesParameters(err) || !s.mayIsolate() {
		return instances, err
	}
	return s.isolate(ctx, ids, err)
}

// isolate halves the call that was refused until only the ids are left that it was refused for. Without any success it was
// refused for another reason.
func (s *snapshot) isolate(ctx context.Context, ids []string, refusal error) ([]alicloud.Instance, error) {
	parts := halves(ids)
	var found []alicloud.Instance
	var refused []string
	succeeded := false
	for calls := 0; len(parts) > 0 && calls < isolationCalls; calls++ {
		part := parts[0]
		parts = parts[1:]
		instances, err := s.read(ctx, alicloud.InstanceQuery{IDs: part})
		switch {
		case err == nil:
			succeeded = true
			found = append(found, instances...)
		case !refusesParameters(err):
			return nil, err
		case len(part) == 1:
			refused = append(refused, part[0])
		default:
			parts = append(halves(part), parts...)
		}
	}
	if !succeeded {
		return nil, refusal
	}
	s.refuse(refused)
	if len(parts) > 0 {
		return nil, refusal // the next search finds more of them
	}
	return found, nil
}

// halves splits ids; one id has no halves.
func halves(ids []string) [][]string {
	if len(ids) < 2 {
		return nil
	}
	return [][]string{ids[:len(ids)/2], ids[len(ids)/2:]}
}

// mayIsolate reports whether the last search is long enough ago, and begins one if so.
func (s *snapshot) mayIsolate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.isolated) < isolationPause {
		return false
	}
	s.isolated = time.Now()
	return true
}

func (s *snapshot) refuse(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, at := range s.refused {
		if time.Since(at) >= refusedAge {
			delete(s.refused, id)
		}
	}
	for _, id := range ids {
		s.refused[id] = time.Now()
	}
}

// isRefused reports whether a call that names the id would be refused.
func (s *snapshot) isRefused(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isRefusedLocked(id)
}

func (s *snapshot) isRefusedLocked(id string) bool {
	at, ok := s.refused[id]
	return ok && time.Since(at) < refusedAge
}
