package alicloud

import (
	"errors"
	"fmt"
	"slices"
)

// tokens is what the lists of NLB say of their pages.
type tokens struct {
	NextToken  string
	TotalCount *int
}

// tokenPage is one page of a list that is read by token.
type tokenPage[T any] struct {
	answer
	tokens
	items []T
}

// tokenPages reads all pages of a list. read makes the call with the parameters in, in which the token of the page is set. The pages
// must add up to the TotalCount.
func tokenPages[T any](action string, in params, id func(T) string, read func() (tokenPage[T], error)) ([]T, error) {
	for attempt := 1; ; attempt++ {
		all, err := tokenPagesOnce(action, in, id, read)
		if !errors.Is(err, errListChanged) || attempt == listAttempts {
			return all, err
		}
	}
}

func tokenPagesOnce[T any](action string, in params, id func(T) string, read func() (tokenPage[T], error)) ([]T, error) {
	delete(in, nextToken)
	var all []T
	var total *int
	for number := 1; ; number++ {
		p, err := read()
		if err != nil {
			return nil, err
		}
		if number > 1 && !equalTotals(p.TotalCount, total) {
			return nil, p.unusable(action, "%w", errListChanged)
		}
		all, total = append(all, p.items...), p.TotalCount
		if err = check(p.answer, action, number, all, id); err != nil {
			return nil, err
		}
		more, err := in.nextPage(p.answer, action, p.NextToken, number)
		switch {
		case err != nil:
			return nil, err
		case more && len(p.items) == 0:
			return nil, p.unusable(action, "an empty page has a next one")
		case more:
			continue
		case total == nil:
			return nil, p.unusable(action, "the answer has no TotalCount")
		case len(all) != *total:
			return nil, p.unusable(action, "the pages have %d items and TotalCount is %d", len(all), *total)
		}
		return all, nil
	}
}

// notAmong returns the error for an answer that is about something else than was asked for. Without ids everything was.
func notAmong[T any](action string, ids []string, items []T, of func(T) string) error {
	if len(ids) == 0 {
		return nil
	}
	for _, item := range items {
		if id := of(item); !slices.Contains(ids, id) {
			return &Error{Action: action, err: fmt.Errorf("asked for %q, got %q", ids, cloudText(id))}
		}
	}
	return nil
}
