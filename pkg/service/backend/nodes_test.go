package backend_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// TestOnPremisesNodeIsResolved: a machine outside of Alibaba Cloud has no instance to wait for, so it keeps no backend server in a group.
func TestOnPremisesNodeIsResolved(t *testing.T) {
	t.Parallel()
	none := func(*corev1.Node) (string, error) { return "", errors.New("no instance") }
	for value, unresolved := range map[string]bool{"true": false, "": true} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{nodes.LabelOnPremises: value}}}
		got := backend.NodeOf(node, none, time.Now())
		if got.Unresolved != unresolved || got.Candidate {
			t.Errorf("on-premises=%q: unresolved = %v, candidate = %v, want %v, false", value, got.Unresolved, got.Candidate, unresolved)
		}
	}
}
