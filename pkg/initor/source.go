package initor

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// ErrNotECS is wrapped by a source's error when, as far as the source can see, the node is not an ECS instance. It says
// why in its text.
var ErrNotECS = errors.New("not an ECS instance")

// Source finds out which ECS instance a node is.
type Source interface {
	// Name names the source in logs and errors, for example "metadata service".
	Name() string
	// Identify returns the provider ID of n. The error wraps [ErrNotECS] when there is nothing to be found here; any other
	// error means that the source could not tell this time.
	Identify(ctx context.Context, n *corev1.Node) (node.ProviderID, error)
}

// identity is what a source found.
type identity struct {
	node.ProviderID
	source string
}

// ask returns the answer of the first source that has one. Without any, the error wraps [ErrNotECS] only if every source
// says so: one that could not tell leaves the matter open.
func ask(ctx context.Context, sources []Source, n *corev1.Node) (identity, error) {
	var absent, unsure []error
	for _, source := range sources {
		id, err := source.Identify(ctx, n)
		switch {
		case err == nil:
			return identity{ProviderID: id, source: source.Name()}, nil
		case errors.Is(err, ErrNotECS):
			absent = append(absent, fmt.Errorf("%s: %w", source.Name(), err))
		default:
			unsure = append(unsure, fmt.Errorf("%s: %w", source.Name(), err))
		}
	}
	if len(unsure) > 0 {
		return identity{}, OneLine(unsure...)
	}
	return identity{}, OneLine(absent...)
}

// OneLine joins errors for a reader of one line; errors.Join would write a line for each. It drops nil, and is nil if nothing
// is left.
func OneLine(errs ...error) error {
	var joined error
	for _, err := range errs {
		switch {
		case joined == nil:
			joined = err
		case err != nil:
			joined = fmt.Errorf("%w; %w", joined, err)
		}
	}
	return joined
}
