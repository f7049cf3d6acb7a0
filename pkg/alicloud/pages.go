package alicloud

import (
	"errors"
	"fmt"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/responses"
)

// answer is what all answers have in common. Types of answers embed it.
type answer struct {
	*responses.BaseResponse
	RequestId string
}

func newAnswer() answer { return answer{BaseResponse: &responses.BaseResponse{}} }

// unusable returns the error for an answer that arrived and says nothing that can be relied on.
func (a answer) unusable(action, format string, args ...any) *Error {
	return &Error{Action: action, Status: a.GetHttpStatus(), RequestID: cloudText(a.RequestId), err: fmt.Errorf(format, args...)}
}

// noList says that an answer has no list at all. It is no empty one: every resource would count as gone.
const noList = "the answer has no list"

// page is one page of a list that is read by page number.
type page[T any] struct {
	answer
	items []T
	// total is the TotalCount of the answer: how many items all pages have together. nil where the answer has none.
	total *int
}

// withoutList is the page of an answer that lacks the list: an empty one where the answer says that there is nothing to list.
func withoutList[T any](from answer, action string, total *int) (page[T], error) {
	if total == nil {
		return page[T]{}, from.unusable(action, noList)
	}
	return page[T]{from, nil, total}, nil
}

// listAttempts is how often a list is read whose length changes from page to page, before it is given up. Between two pages an
// item that moved to the page before is in neither, and would count as gone.
const listAttempts = 3

var errListChanged = errors.New("the list changed while it was read")

// maxPages bounds how often a list is asked for its next page. The longest lists of real accounts, with 50 items a page, have some hundred:
// an endpoint that always has one more would keep a worker, its memory and the rate of the action.
const maxPages = 1000

// check fails for a list of which a page says what another one has said, or that does not end. An endpoint or a cache that ignores the
// number of the page would otherwise be believed where the count happens to fit, and what the list lacks would count as gone.
func check[T any](a answer, action string, number int, all []T, id func(T) string) error {
	if number >= maxPages {
		return a.unusable(action, "the list has more than %d pages", maxPages)
	}
	seen := make(map[string]bool, len(all))
	for _, item := range all {
		if seen[id(item)] {
			return a.unusable(action, "%w: %q stands in it twice", errListChanged, cloudText(id(item)))
		}
		seen[id(item)] = true
	}
	return nil
}

// pages reads all pages of a list. The pages must add up to the TotalCount, and have each id once.
func pages[T any](action string, id func(T) string, read func(number int) (page[T], error)) ([]T, error) {
	for attempt := 1; ; attempt++ {
		all, err := pagesOnce(action, id, read)
		if !errors.Is(err, errListChanged) || attempt == listAttempts {
			return all, err
		}
	}
}

func pagesOnce[T any](action string, id func(T) string, read func(number int) (page[T], error)) ([]T, error) {
	var all []T
	var total *int
	for number := 1; ; number++ {
		p, err := read(number)
		if err != nil {
			return nil, err
		}
		if number > 1 && total != nil && !equalTotals(p.total, total) {
			return nil, p.unusable(action, "%w", errListChanged)
		}
		all, total = append(all, p.items...), p.total
		if err = check(p.answer, action, number, all, id); err != nil {
			return nil, err
		}
		switch {
		case total == nil && len(p.items) > 0: // without a count only an empty page is the end
		case total == nil || len(all) == *total:
			return all, nil
		case len(p.items) == 0 || len(all) > *total:
			return nil, p.unusable(action, "the pages have %d items and TotalCount is %d", len(all), *total)
		}
	}
}

func equalTotals(a, b *int) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// nextPage makes in ask for the page that the token names, and reports whether there is one. A token that comes back would be
// followed for ever. number is that of the page which names it.
func (p params) nextPage(from answer, action, token string, number int) (more bool, err error) {
	if number >= maxPages {
		return false, from.unusable(action, "the list has more than %d pages", maxPages)
	}
	if token != "" && token == p[nextToken] {
		return false, from.unusable(action, "the token of the next page is that of the page itself")
	}
	p.set(nextToken, token)
	return token != "", nil
}

const nextToken = "NextToken"

// plainAnswer is the answer of a write of which nothing else counts.
func plainAnswer() *answer {
	plain := newAnswer()
	return &plain
}

// requestID identifies the call to the vendor.
func (a *answer) requestID() string { return a.RequestId }
