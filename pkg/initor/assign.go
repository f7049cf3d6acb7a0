package initor

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// NodeAPI is what the initializer does with nodes. client-go's NodeInterface satisfies it.
type NodeAPI interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Node, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions,
		subresources ...string) (*corev1.Node, error)
}

// ConflictError says that the node has a provider ID that is not the one of its instance. No retry helps: Kubernetes lets
// nobody change a provider ID.
type ConflictError struct {
	Node, Have, Want string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("node %s: spec.providerID is %q, but its ECS instance is %q: it cannot be changed, so delete the Node "+
		"and let its kubelet register it again (without another --provider-id or cloud provider)", e.Node, e.Have, e.Want)
}

// needsPatch says whether n still lacks its provider ID. The spellings of one ID count as equal; another ID is a
// [*ConflictError].
func needsPatch(n *corev1.Node, want node.ProviderID) (bool, error) {
	if n.Spec.ProviderID == "" {
		return true, nil
	}
	if have, err := node.ParseProviderID(n.Spec.ProviderID); err != nil || have != want {
		return false, &ConflictError{Node: n.Name, Have: n.Spec.ProviderID, Want: want.String()}
	}
	return false, nil
}

// spelling returns the provider ID as it is written.
func (i *Initializer) spelling(id node.ProviderID) string {
	if i.opts.PrefixedProviderIDs {
		return id.Prefixed()
	}
	return id.String()
}

// patchFor returns a merge patch that the API server refuses with a conflict unless the node is still the one that was
// read: neither a provider ID that somebody else set meanwhile, nor a new Node of the same name is overwritten.
func patchFor(n *corev1.Node, want string) ([]byte, error) {
	type object struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	}
	type spec struct {
		ProviderID string `json:"providerID"`
	}
	return json.Marshal(struct {
		Metadata object `json:"metadata"`
		Spec     spec   `json:"spec"`
	}{object{n.UID, n.ResourceVersion}, spec{want}})
}

// transient says whether the same request to the API server may succeed a little later: it was not answered, the server is
// busy or starting, or the node changed between the read and the write.
func transient(err error) bool {
	reason := apierrors.ReasonForError(err)
	switch reason {
	case metav1.StatusReasonUnknown, metav1.StatusReasonConflict, metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout,
		metav1.StatusReasonTooManyRequests, metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable:
		return true
	default:
		return false
	}
}
