package groups

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// proveAway finds out which Services other than svc name a load balancer by its ID and never get there, because they stay on another one.
// They do not keep it: once their annotations change, nothing says any more that they did, and nobody would delete it. What cannot be read
// now is an error: the answer decides on a removal. Where the cloud refuses to say, the Service may get there: whoever can create Services
// must not be able to keep those of others from being deleted.
func (g *Groups[LB]) proveAway(ctx context.Context, svc *corev1.Service, id string) error {
	all, err := g.Services.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list the Services: %w", err)
	}
	for _, other := range all {
		if other.UID == svc.UID || !g.namesBalancer(other, id) {
			continue
		}
		at := g.settledAt(other, id)
		if at != "" {
			stays, err := g.Cloud.Stays(ctx, other, at)
			if err != nil && !alicloud.IsForbidden(err) {
				return err
			}
			if err != nil || !stays {
				at = ""
			}
		}
		g.noteAway(other.UID, at)
	}
	return nil
}

// isAway reports whether a Service that names a load balancer is on another one, where it was seen to stay.
func (g *Groups[LB]) isAway(svc *corev1.Service, id string) bool {
	at := g.settledAt(svc, id)
	return at != "" && g.awayAt(svc.UID) == at
}

// settledAt returns the load balancer on which a Service is that names the one with the id, as far as the Service says, empty where it does
// not, or where it is in the middle of a move or in a group: it may still get to the other one. A Record that cannot be read, or is another
// Service's, may say anything.
func (g *Groups[LB]) settledAt(svc *corev1.Service, id string) string {
	record, readable := driver.RecordOn(svc)
	unreadable := !readable && meta.FindStatusCondition(svc.Status.Conditions, driver.ConditionWritten) != nil
	at := g.placeOf(svc)
	if unreadable || !driver.HasFinalizer(svc, g.Product.Finalizer) || record.Group != "" || len(record.Leaving) > 0 || at == id ||
		!slices.Contains([]string{"", at}, record.LoadBalancerID) {
		return ""
	}
	return at
}

// noteAway notes that a Service stays on a load balancer, empty where it may get to the one that it names.
func (m *Memory) noteAway(svc types.UID, at string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at == "" {
		delete(m.away, svc)
		return
	}
	if m.away == nil {
		m.away = map[types.UID]string{}
	}
	m.away[svc] = at
}

func (m *Memory) awayAt(svc types.UID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.away[svc]
}
