package problem

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is something about a Service that the author of the Service should know. It keeps nothing else from being done.
type Problem struct {
	// Reason is the reason of the event, one of the constants of this package.
	Reason  string
	Message string
}

// Newf formats the message of a problem as [fmt.Sprintf] does, but for long texts, which are cut.
func Newf(reason, format string, args ...any) Problem {
	bounded := make([]any, len(args))
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			arg = Cut(text, maxMessage)
		}
		bounded[i] = arg
	}
	return Problem{Reason: reason, Message: Cut(fmt.Sprintf(format, bounded...), maxMessage)}
}

// ConfigError says what in a Service or in the cloud config the user must change. Repeating the attempt does not help.
type ConfigError struct {
	// Field is the annotation key or the field.
	Field string
	// Reason says what was found and what is accepted.
	Reason string

	Event string // reason of the event; empty for the general one
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Field + ": " + e.Reason }

// RefusedError is a call that the cloud refuses because of a value that the author of the Service chose. Unlike after a [ConfigError], the
// attempt is repeated: what is missing may be made.
type RefusedError struct {
	Problem Problem
	// Err is the answer of the cloud.
	Err error
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Problem.Message + " (" + e.Err.Error() + ")" }

// Unwrap returns the answer of the cloud.
func (e *RefusedError) Unwrap() error { return e.Err }

// ByReason joins the messages of each reason into one problem, so that one outcome is one event. What holds for several
// ports is said once.
func ByReason(problems []Problem) []Problem {
	var joined []Problem
	at, said, left := map[string]int{}, map[Problem]bool{}, map[string]int{}
	messages := map[string][]string{}
	for _, problem := range problems {
		if said[problem] {
			continue
		}
		said[problem] = true
		if _, ok := at[problem.Reason]; !ok {
			at[problem.Reason] = len(joined)
			joined = append(joined, problem)
		}
		if len(messages[problem.Reason]) == maxJoined {
			left[problem.Reason]++
			continue
		}
		messages[problem.Reason] = append(messages[problem.Reason], problem.Message)
	}
	for i := range joined {
		joined[i].Message = strings.Join(messages[joined[i].Reason], "; ")
		if n := left[joined[i].Reason]; n > 0 {
			joined[i].Message += fmt.Sprintf("; and %d more", n)
		}
	}
	return joined
}

// HasInvalid reports whether an annotation was not accepted.
func HasInvalid(problems []Problem) bool { return HasReason(problems, ReasonInvalidAnnotation) }

// HasReason reports whether one of the problems has the reason.
func HasReason(problems []Problem, reason string) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Reason == reason })
}

// maxNamed is how many names a message lists.
const maxNamed = 5

// Count returns a number of things in words that people read, such as "1 backend" and "2 backends".
func Count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// Some lists names in a message. A message that named all of them, or their exact number, would differ with each change, and each
// difference is an event for every Service.
func Some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	others := "others"
	for least := 1000; least >= 10; least /= 10 { //nolint:mnd // powers of ten
		if len(names)-maxNamed > least {
			others = fmt.Sprintf("more than %d others", least)
			break
		}
	}
	return strings.Join(names[:maxNamed], ", ") + " and " + others
}
