package problem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestLongTextsAreCut: what users may write is bounded, and stays valid UTF-8.
func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"shorter", "abc", 5, "abc"},
		{"as long", "abcde", 5, "abcde"},
		{"longer", "abcdef", 5, "ab…"},
		{"within a character", "aéé", 4, "a…"},
	} {
		if got := Cut(test.text, test.limit); got != test.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	long := strings.Repeat("x", 256<<10)
	if got := Value("a\"b\n"); got != `"a\"b\n"` {
		t.Errorf("value %s", got)
	}
	if got := Value(long); len(got) > maxValue+30 || !strings.HasSuffix(got, `…" (262144 bytes)`) {
		t.Errorf("a long value: %s", got)
	}
	for name, p := range map[string]Problem{
		"a long argument": Newf(ReasonInvalidAnnotation, "%s: %s", long, "end"), "many arguments": Newf(ReasonInvalidAnnotation, "%s %s %s",
			long, long, long),
		"a list": Newf(ReasonInvalidAnnotation, "%v", strings.Split(long, "")),
	} {
		if len(p.Message) > maxMessage || p.Reason != ReasonInvalidAnnotation {
			t.Errorf("%s: reason %s, message of %d bytes", name, p.Reason, len(p.Message))
		}
	}
	if p := Newf(ReasonInvalidAnnotation, "%s of %d: %v", "port", 80, errors.New("no")); p.Message != "port of 80: no" {
		t.Errorf("message %q", p.Message)
	}
}

// TestByReason: an outcome is one event, in which each thing is said once.
func TestByReason(t *testing.T) {
	t.Parallel()
	a, b, c := Problem{"A", "one"}, Problem{"A", "two"}, Problem{"B", "three"}
	many, texts := []Problem{c}, []string{}
	for i := range maxJoined + 3 {
		texts = append(texts, fmt.Sprint(i))
		many = append(many, Problem{"A", texts[i]})
	}
	for _, test := range []struct {
		name       string
		have, want []Problem
	}{
		{"none", nil, nil},
		{"one", []Problem{a}, []Problem{a}},
		{"of one reason", []Problem{a, b}, []Problem{{"A", "one; two"}}},
		{"of several, in the order in which they came", []Problem{c, a, b}, []Problem{c, {"A", "one; two"}}},
		{"the same twice", []Problem{a, c, a}, []Problem{a, c}},
		{"very many", many, []Problem{c, {"A", strings.Join(texts[:maxJoined], "; ") + "; and 3 more"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(test.have)
			if diff := cmp.Diff(test.want, ByReason(test.have)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.have); diff != "" {
				t.Errorf("the argument was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestHasReason(t *testing.T) {
	t.Parallel()
	problems := []Problem{{ReasonAnnotationNoEffect, "a"}, {ReasonInvalidAnnotation, "b"}}
	if !HasInvalid(problems) || HasInvalid(problems[:1]) || HasInvalid(nil) || !HasReason(problems, ReasonAnnotationNoEffect) {
		t.Error("reasons of problems")
	}
}

// TestNamesInMessages: the message of many names changes rarely, because each change is an event.
func TestNamesInMessages(t *testing.T) {
	t.Parallel()
	names := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return all
	}
	for _, test := range []struct {
		n    int
		want string
	}{
		{0, ""}, {1, "0"}, {5, "0, 1, 2, 3, 4"}, {6, "0, 1, 2, 3, 4 and others"}, {15, "0, 1, 2, 3, 4 and others"}, {16,
			"0, 1, 2, 3, 4 and more than 10 others"},
		{105, "0, 1, 2, 3, 4 and more than 10 others"}, {106, "0, 1, 2, 3, 4 and more than 100 others"}, {2000,
			"0, 1, 2, 3, 4 and more than 1000 others"},
	} {
		if got := Some(names(test.n)); got != test.want {
			t.Errorf("%d names: %q, want %q", test.n, got, test.want)
		}
	}
	for want, n := range map[string]int{"0 ports": 0, "1 port": 1, "2 ports": 2} {
		if got := Count(n, "port"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cloud says no")
	refused := &RefusedError{Problem: Problem{"A", "acl-1 does not exist"}, Err: cause}
	for want, err := range map[string]error{
		"vpcid: must be set": &ConfigError{Field: "vpcid", Reason: "must be set"}, "acl-1 does not exist (the cloud says no)": refused,
		"waits for a job": &WaitError{Reason: "waits for a job"},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if !errors.Is(refused, cause) {
		t.Error("the answer of the cloud is lost")
	}
}

// TestReasonsAreTexts: reasons of events are one word each, and no two are the same.
func TestReasonsAreTexts(t *testing.T) {
	t.Parallel()
	reasons := []string{
		ReasonEnsured, ReasonCleaned, ReasonSyncFailed, ReasonCleanFailed, ReasonSkipSyncBackends, ReasonPreservedOnDelete,
		ReasonFeatureNotSupported, ReasonFailedSetEIPAddress, ReasonLoadBalancerLocked, ReasonLoadBalancerStopped,
		ReasonFailedUpdateGate, ReasonAnnotationChanged, ReasonFailedAddFinalizer, ReasonFailedRemoveFinalizer, ReasonFailedUpdateStatus,
		ReasonInvalidAnnotation, ReasonUnknownAnnotation,
		ReasonAnnotationNoEffect, ReasonImmutableAttribute, ReasonListenerConflict, ReasonLoadBalancerNotReusable, ReasonMoveRefused,
		ReasonListenersLeftAlone, ReasonLoadBalancerRecreated,
		ReasonLoadBalancerKept, ReasonKeptInUse, ReasonCertificateExpired, ReasonCertificateExpiring, ReasonPaused, ReasonZonesChosen, ReasonQuotaReached,
		ReasonQuotaNearlyReached,
	}
	seen := map[string]bool{}
	for _, reason := range reasons {
		if seen[reason] || reason == "" || strings.ContainsAny(reason, " .,:") {
			t.Errorf("reason %q", reason)
		}
		seen[reason] = true
	}
}
