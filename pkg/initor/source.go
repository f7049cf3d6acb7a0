package initor

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// ErrNotECS is wrapped by a source's error when, as far as the source can see, the node is not an ECS instance. It says
// why in its text.
var ErrNotECS = errors.New("not an ECS instance")

// ErrNotUsable is wrapped by the error of a source that cannot be asked, because what it needs is not there. It says nothing about
// the node, and asking again does not help.
var ErrNotUsable = errors.New("not usable")

// ErrIncomplete is an [ErrNotUsable] of a source that a user meant to be asked, and that lacks something. It is reported also where the
// other sources deny the node.
var ErrIncomplete = fmt.Errorf("%w as it is set up", ErrNotUsable)

// Source finds out which ECS instance a node is.
type Source struct {
	// Name names the source in logs and errors, for example "metadata service".
	Name string
	// Identify returns the provider ID of n. The error wraps [ErrNotECS] when there is nothing to be found here, and
	// [ErrNotUsable] when the source cannot be asked; any other error means that nothing is known this time.
	Identify func(ctx context.Context, n *corev1.Node) (node.ProviderID, error)
}

// Given is a source that has the answer from a flag.
func Given(id node.ProviderID) Source {
	return Source{"flag", func(context.Context, *corev1.Node) (node.ProviderID, error) { return id, nil }}
}

// identity is what a source found.
type identity struct {
	node.ProviderID
	source string
}

// ask returns the answer of the first source that has one. Without any, the error wraps [ErrNotECS] only if every source that
// can be asked says so: one that does not know leaves the matter open.
func ask(ctx context.Context, sources []Source, n *corev1.Node) (identity, error) {
	var absent, unsure, unusable, incomplete []error
	for _, source := range sources {
		id, err := source.Identify(ctx, n)
		if err == nil {
			return identity{ProviderID: id, source: source.Name}, nil
		}
		err = fmt.Errorf("%s: %w", source.Name, err)
		switch {
		case errors.Is(err, ErrIncomplete):
			unusable, incomplete = append(unusable, err), append(incomplete, err)
		case errors.Is(err, ErrNotUsable):
			unusable = append(unusable, err)
		case errors.Is(err, ErrNotECS):
			absent = append(absent, err)
		default:
			unsure = append(unsure, err)
		}
	}
	if len(unsure) > 0 || len(absent) == 0 {
		// What could not be asked is the user's way out.
		return identity{}, OneLine(append(unsure, unusable...)...)
	}
	return identity{}, OneLine(append(absent, incomplete...)...)
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

// needsPatch says whether n still lacks its provider ID. The spellings of one ID count as equal; another ID is an [ErrConflict].
func needsPatch(n *corev1.Node, want node.ProviderID) (bool, error) {
	if n.Spec.ProviderID == "" {
		return true, nil
	}
	if have, err := node.ParseProviderID(n.Spec.ProviderID); err != nil || have != want {
		return false, fmt.Errorf("node %s: spec.providerID %q %w, %q: it cannot be changed, so delete the Node and let its kubelet register it "+
			"again (without another --provider-id or cloud provider)", n.Name, n.Spec.ProviderID, ErrConflict, want)
	}
	return false, nil
}

// transient says whether the same request to the API server may succeed a little later: it was not answered, the server is
// busy or starting, or the node changed between the read and the write.
func transient(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown, metav1.StatusReasonConflict, metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout,
		metav1.StatusReasonTooManyRequests, metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable:
		return true
	default:
		return false
	}
}
