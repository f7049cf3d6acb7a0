package presence

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// account is what a control reads: the VPC of the cluster, or not.
type account []netip.Prefix

func (a account) DescribeVPCBlocks(context.Context, string) ([]netip.Prefix, error) { return a, nil }

func absences(network Network) *Absences {
	return NewAbsences("CLB", func(context.Context, string) (string, error) { return "", errors.New("does not exist") }, network, "vpc-1")
}

var ours = account{netip.MustParsePrefix("10.0.0.0/8")}

// TestOnlyThisPackageWritesAPresence: a field that others could write would make "gone" a matter of discipline.
func TestOnlyThisPackageWritesAPresence(t *testing.T) {
	t.Parallel()
	for field := range reflect.TypeFor[Presence]().Fields() {
		if field.IsExported() {
			t.Errorf("the field %s is exported", field.Name)
		}
	}
	if zero := (Presence{}); zero.Gone() || zero.Present() || !zero.Unknown() {
		t.Error("the zero value is not unknown")
	}
}

// TestGoneNeedsAProof: what one search that finds nothing means for what was known, and what a second one, [waits.LoadBalancerMissing]
// later.
func TestGoneNeedsAProof(t *testing.T) {
	t.Parallel()
	lost := Found("lb-1", false)
	for _, test := range []struct {
		name        string
		known       Presence
		absence     Absence
		network     account
		lost        bool
		once, twice bool
		vanishes    string
	}{
		{name: "nothing is known", twice: true, network: ours},
		{name: "nothing is known, in another account"},
		{name: "never created", absence: Absence{NeverCreated: true}, once: true, twice: true},
		{name: "present", known: lost, absence: Absence{ID: "lb-1"}, network: ours, twice: true, vanishes: "lb-1"},
		{name: "present, in another account", known: lost, absence: Absence{ID: "lb-1"}},
		{name: "a call said so", known: lost, lost: true, absence: Absence{ID: "lb-1"}, network: ours, twice: true, vanishes: "lb-1"},
		{name: "deleted", known: lost.AfterDeletion(), absence: Absence{ID: "lb-1"}, twice: true},
		{name: "released", known: lost.AfterRelease(""), once: true, twice: true},
		{name: "creation unanswered", known: Presence{}.AfterUnansweredCreation(), network: ours, twice: true},
		{name: "creation unanswered after a release", known: lost.AfterRelease("lb-1").AfterUnansweredCreation(), network: ours,
			absence: Absence{ID: "lb-1"}, twice: true, vanishes: "lb-1"},
		{name: "creation unanswered after a deletion, in another account", known: lost.AfterDeletion().AfterUnansweredCreation(),
			absence: Absence{ID: "lb-1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, before := absences(test.network), test.known
				if test.lost {
					before = before.AfterLoss("lb-1")
				}
				known, err := m.Decide(t.Context(), before, test.absence)
				expect(t, "the first answer", known, err, test.once)
				if _, waits := errors.AsType[*problem.WaitError](err); err != nil && !waits {
					t.Errorf("the first answer says %v, want one that waits", err)
				}
				time.Sleep(waits.LoadBalancerMissing)
				known, err = m.Decide(t.Context(), known, test.absence)
				expect(t, "the second answer", known, err, test.twice)
				if got := known.Vanished(); got != test.vanishes {
					t.Errorf("vanished %q, want %q", got, test.vanishes)
				}
			})
		})
	}
}

// expect fails unless a decision is gone without an error, or unknown with one.
func expect(t *testing.T, what string, known Presence, err error, gone bool) {
	t.Helper()
	if known.Gone() != gone || known.Unknown() == gone || (err == nil) != gone {
		t.Errorf("%s: gone %v with the error %v, want gone %v", what, known.Gone(), err, gone)
	}
}

// TestSeenDeletion: a load balancer is gone whose deletion this process saw succeed and end, and not because it vanished.
func TestSeenDeletion(t *testing.T) {
	t.Parallel()
	known := Found("lb-1", false).AfterSeenDeletion()
	if !known.Gone() || !known.WasDeleted() || known.ID() != "lb-1" || known.Vanished() != "" {
		t.Errorf("%+v", known)
	}
	if known = known.Doubted(); !known.Unknown() {
		t.Errorf("in doubt: %+v", known)
	}
}

// TestDoubtTakesBackGone: what is asked for again is unknown again and needs a new proof, unless this process removed it.
func TestDoubtTakesBackGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, absence := absences(ours), Absence{ID: "lb-1"}
		known, _ := m.Decide(t.Context(), Found("lb-1", true), absence)
		time.Sleep(waits.LoadBalancerMissing)
		known, err := m.Decide(t.Context(), known, absence)
		expect(t, "twice missing", known, err, true)
		known = known.Doubted()
		if known.Gone() || known.Vanished() != "" || known.ID() != "lb-1" || !known.WasReused() || known.Reused() {
			t.Errorf("in doubt: %+v", known)
		}
		known, err = m.Decide(t.Context(), known, absence)
		expect(t, "missing after the doubt", known, err, false)
		known, err = m.Decide(t.Context(), Found("lb-1", false).AfterRelease("lb-1").Doubted(), absence)
		expect(t, "released", known, err, true)
		known, err = m.Decide(t.Context(), known.Doubted(), absence)
		expect(t, "released, after a doubt", known, err, true)
		if found := Found("lb-1", false); found.Doubted() != found {
			t.Error("a doubt changes what is present")
		}
	})
}
