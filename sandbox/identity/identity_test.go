package identity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeLeavesOutWhatTheSchemeDoesNotKnow(t *testing.T) {
	t.Parallel()
	objects, err := decode([]byte(`# a comment of its own
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: program}
---
apiVersion: apps.kruise.io/v1alpha1
kind: BroadcastJob
metadata: {name: job}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: program}
`))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	if diff := cmp.Diff([]string{"ServiceAccount", "ClusterRole"}, kinds); diff != "" {
		t.Errorf("kinds differ (-want +got):\n%s", diff)
	}
	if _, err := decode([]byte("kind: [ServiceAccount")); err == nil {
		t.Error("malformed YAML is accepted")
	}
}
