package deploy

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// serverPause is how long a backend server that the cloud refused is left out. Whatever made the cloud refuse it (its VPC, its state, a
// quota of its own) may end at any time.
var serverPause = refusal.Pause{Least: minRefusedFor, Longest: waits.Refused}

// minRefusedFor is how long what the cloud refused twice is not tried again.
const minRefusedFor = time.Minute

// maxInARow is how many backend servers the cloud may refuse one by one, with none accepted between, before the rest waits for the
// next pass: the cause may be the group or the CLB, and then each attempt wastes a call.
const maxInARow = 5

// refusesServer reports whether a call was refused for what it says about its backend servers: an instance that was released, has no
// address, is in another VPC or behind as many CLBs as it may be.
func refusesServer(err error) bool {
	return errorCode(err) != "" && refusal.OfServers(err, resourceGone, alicloud.IsTooManyBackends, alicloud.IsLocked, IsOverQuota)
}

// resourceGone reports whether the CLB or the group of a call is gone.
func resourceGone(err error) bool {
	return alicloud.IsNotFound(err) && !alicloud.HasCode(err, "InvalidInstanceId.NotFound")
}

// IsOverQuota reports whether a call was refused because the CLB has as many backend servers as it may have. Other quotas are those of
// one instance.
// Source: https://www.alibabacloud.com/help/en/slb/api-addvservergroupbackendservers.
func IsOverQuota(err error) bool {
	return alicloud.HasCode(err, "InstanceBackendServerNumberOverLimit")
}

// ErrNoRoom says that backend servers were left out because other Services have as many as the CLB takes, see [Applier.Limit].
var ErrNoRoom = errors.New("other Services have all the backend servers that the CLB can have; request a higher quota of them in the Quota Center")

// LacksRoom reports whether backend servers are left out because the CLB has no room for them.
func LacksRoom(err error) bool { return IsOverQuota(err) || errors.Is(err, ErrNoRoom) }

// Memory is what the answers to earlier calls have shown. The zero value is empty; several goroutines may use it.
type Memory struct {
	// Creations has Services take turns while the quota of CLBs is used up.
	Creations    refusal.Creations
	servers      refusal.Refusals[change]
	replacements refusal.Refusals[replacement]
	shortages    refusal.Refusals[shortage]
	attempts     refusal.Attempts
	uses         refusal.Uses // vServer groups and access control lists that are not deleted because something uses them

	mu    sync.Mutex // guards the rest
	paces map[string]pace
	// vacancies are ports that nothing serves because their listeners were deleted to make room for others.
	vacancies map[vacancy]*model.Listener
	// settle is the settle time of the CLB that was last written to: the first guess for others.
	settle time.Duration
}

// change is what a call does to one backend server.
type change struct {
	op      model.Op
	groupID string
	backend alicloud.Backend
}

// refusedServer is a backend server that a step leaves out.
type refusedServer struct {
	backend alicloud.Backend
	err     error
}

// reportRefused turns the backend servers that a step left out into one error for each code.
func (a *Applier) reportRefused(step model.Step) {
	for len(a.left) > 0 {
		first := a.left[0]
		same := func(r refusedServer) bool { return errorCode(r.err) == errorCode(first.err) }
		var names []string
		for _, left := range a.left {
			if same(left) {
				names = append(names, left.backend.String())
			}
		}
		a.errs = append(a.errs, fmt.Errorf("%s: the cloud refuses %s: %w", a.describeStep(step), problem.Some(names), first.err))
		a.left = slices.DeleteFunc(a.left, same)
	}
}

func errorCode(err error) string {
	if refused, ok := errors.AsType[*alicloud.Error](err); ok {
		return refused.Code
	}
	return ""
}
