package failure

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// How long a refused call waits. A listener or group is in transition for some seconds.
const (
	minBusyWait = 2 * time.Second
	maxBusyWait = 5 * time.Second
	// maxThrottleJitter spreads the Services of a cluster over the start of the new window.
	maxThrottleJitter = 3 * time.Second
	// AtOnce is for a pass that the next one follows, with what has been learned.
	AtOnce = time.Millisecond
)

// IsInterrupted reports whether a pass gave up waiting for the rate limit because there is something newer to do.
func IsInterrupted(err error) bool { return errors.Is(err, alicloud.ErrInterrupted) }

// WaitTime returns how long to wait before trying again, when err says nothing but that the cloud is not ready for the
// call: that is no failure, and nobody needs to hear of it.
func WaitTime(err error) (time.Duration, bool) {
	throttled, gaveUp, longest, window := false, false, time.Duration(0), time.Duration(0)
	for _, leaf := range Leaves(err) {
		var wait *problem.WaitError
		switch {
		case errors.As(leaf, &wait):
			longest = max(longest, wait.For)
		case errors.Is(leaf, alicloud.ErrPaused): // the next pass shows what it would do
			longest = max(longest, minBusyWait)
		case IsInterrupted(leaf):
			gaveUp = true
		case alicloud.IsThrottled(leaf):
			throttled, window = true, max(window, alicloud.ThrottledFor(leaf))
		case !alicloud.IsBusy(leaf):
			return 0, false
		}
	}
	if gaveUp {
		return AtOnce, true // the next pass plans anew, and takes the place in the line
	}
	if throttled {
		now := time.Now()
		return now.Truncate(window).Add(window).Sub(now) + rand.N(min(maxThrottleJitter, window)), true
	}
	if longest > 0 {
		return longest, true
	}
	return minBusyWait + rand.N(maxBusyWait-minBusyWait), true
}

// AnyWaits reports whether a part of an error says that the cloud is not ready for the call.
func AnyWaits(err error) bool {
	return slices.ContainsFunc(Leaves(err), func(leaf error) bool {
		_, later := WaitTime(leaf)
		return later
	})
}

// AllConfig reports whether nothing but a change of the Service or of the cloud config can help against an error, in none of its parts.
func AllConfig(err error) bool {
	return err != nil && !slices.ContainsFunc(Leaves(err), func(leaf error) bool { return !errors.As(leaf, new(*problem.ConfigError)) })
}

// Leaves returns the errors that were joined.
func Leaves(err error) []error {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	var all []error
	for _, part := range joined.Unwrap() {
		all = append(all, Leaves(part)...)
	}
	return all
}

// Text is what an error says, each reason once: ten listeners that are refused for one reason are one text.
func Text(err error) string {
	var texts []string
	at, more := map[string]int{}, map[string]int{}
	for _, leaf := range Leaves(err) {
		reason := Signature(leaf)
		if _, said := at[reason]; said {
			more[reason]++
			continue
		}
		at[reason] = len(texts)
		texts = append(texts, leaf.Error())
	}
	for reason, n := range more {
		texts[at[reason]] += fmt.Sprintf(" (and %d more for the same reason)", n)
	}
	return strings.Join(texts, "; ")
}

// Signature is what stays the same when an attempt fails again in the same way: the text without the ids of requests and jobs.
// What is not tried again for a while says the same as what has just failed, whichever of several it is.
func Signature(err error) string {
	said := sets.New[string]()
	for _, leaf := range Leaves(err) {
		var call *alicloud.Error
		var job *alicloud.JobError
		switch {
		case errors.As(leaf, &call) && call.Code != "":
			said.Insert(call.Action + ":" + call.Code)
		case errors.As(leaf, &job):
			said.Insert(job.Op + ": job failed")
		default:
			said.Insert(alicloud.Lasting(leaf))
		}
	}
	return strings.Join(sets.List(said), ";")
}
