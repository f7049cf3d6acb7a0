package initor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// sourceFunc is a source for tests.
func sourceFunc(f func() (node.ProviderID, error)) Source {
	return Source{"test source", func(context.Context, *corev1.Node) (node.ProviderID, error) { return f() }}
}

var (
	errBroken = errors.New("broken")

	knows  = sourceFunc(func() (node.ProviderID, error) { return testID, nil })
	denies = sourceFunc(func() (node.ProviderID, error) { return node.ProviderID{}, fmt.Errorf("%w: no route", ErrNotECS) })
	absent = sourceFunc(func() (node.ProviderID, error) { return node.ProviderID{}, fmt.Errorf("%w: no key", ErrNotUsable) })
	halved = sourceFunc(func() (node.ProviderID, error) { return node.ProviderID{}, fmt.Errorf("%w: no VPC", ErrIncomplete) })
	fails  = sourceFunc(func() (node.ProviderID, error) { return node.ProviderID{}, errBroken })
)

func TestAsk(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sources []Source
		want    error // nil: the test ID
		not     error
		text    string // part of the error's text
	}{
		"the first that knows":                  {sources: []Source{denies, fails, knows}},
		"all deny":                              {sources: []Source{denies, denies}, want: ErrNotECS},
		"one cannot be asked, the others deny":  {sources: []Source{denies, absent}, want: ErrNotECS, not: ErrNotUsable},
		"one cannot tell, one cannot be asked":  {sources: []Source{fails, absent}, want: ErrNotUsable, not: ErrNotECS},
		"one is set up badly, the others deny":  {sources: []Source{denies, halved}, want: ErrNotECS, text: "no VPC"},
		"nobody can be asked":                   {sources: []Source{absent, absent}, want: ErrNotUsable, not: ErrNotECS},
		"given":                                 {sources: []Source{Given(testID), fails}},
		"one cannot tell, so nothing is denied": {sources: []Source{denies, fails}, want: errBroken, not: ErrNotECS},
	} {
		got, err := ask(t.Context(), test.sources, nodeWithID(""))
		if !errors.Is(err, test.want) || (test.not != nil && errors.Is(err, test.not)) {
			t.Errorf("%s: error %v, want %v and not %v", name, err, test.want, test.not)
		}
		if test.text != "" && !strings.Contains(fmt.Sprint(err), test.text) {
			t.Errorf("%s: error %q does not say %q", name, err, test.text)
		}
		if test.want == nil && got.ProviderID != testID {
			t.Errorf("%s: got %+v, want %+v", name, got, testID)
		}
	}
}
