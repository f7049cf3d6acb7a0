package driver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// ConditionsKept begins the type of a condition on a Service for each load balancer of a group that stays in the cloud because the Service
// names it by its ID, which is the rest of the type. The last Service of the group has gone, and this one may not be there, and may never
// get there: without the condition, nobody would delete the load balancer once the annotation changes. As each has a condition of its own,
// no two writers overwrite what the other one has noted.
const ConditionsKept = "kept.service.alibabacloud.com/"

// KeptBalancer is what one of the [ConditionsKept] holds, as JSON in its message.
type KeptBalancer struct {
	// Product is the name of that of the load balancer.
	Product string `json:"product"`
	// Group is the mark of its group.
	Group string `json:"group"`
	// UID is that of the Service: backup tools restore the status of a Service in another cluster, where the load balancers are not its own.
	UID types.UID `json:"uid"`
}

// keptBy returns what a condition says that is one of the [ConditionsKept] and about this Service.
func keptBy(svc *corev1.Service, condition *metav1.Condition) (id string, found KeptBalancer, ok bool) {
	if id, ok = strings.CutPrefix(condition.Type, ConditionsKept); !ok || json.Unmarshal([]byte(condition.Message), &found) != nil ||
		found.UID != svc.UID {
		return "", KeptBalancer{}, false
	}
	return id, found, true
}

// KeptFor returns the ids of the load balancers of groups that stay in the cloud because a Service names them, or has named them.
func (p Product) KeptFor(svc *corev1.Service) []string {
	var ids []string
	for i := range svc.Status.Conditions {
		if id, found, ok := keptBy(svc, &svc.Status.Conditions[i]); ok && found.Product == p.Name {
			ids = append(ids, id)
		}
	}
	return ids
}

// IsKeptFor reports whether the load balancer with the id is one of [Product.KeptFor], of any product.
func IsKeptFor(svc *corev1.Service, id string) bool {
	_, ok := KeptAs(svc, id)
	return ok
}

// KeptAs returns what a Service holds of a load balancer that stays for it, false for any other one.
func KeptAs(svc *corev1.Service, id string) (KeptBalancer, bool) {
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionsKept+id)
	if condition == nil {
		return KeptBalancer{}, false
	}
	_, found, ok := keptBy(svc, condition)
	return found, ok
}

// KeptAfter returns what stays in the cloud for a Service that gives up its load balancer, but for what it was on or was leaving: it may
// have kept its listeners there.
func (p Product) KeptAfter(svc *corev1.Service, done Removal) []string {
	record, _ := RecordOn(svc)
	return slices.DeleteFunc(p.KeptFor(svc), func(id string) bool { return id == done.ID || slices.Contains(record.Leaving, id) })
}

// KeptBeside says that load balancers stay which have the owner tag of a Service, like the one that it used, empty where there are none.
// Only a human can tell whether they are the Service's: tags can be copied.
func KeptBeside(product Product, svc *corev1.Service, used string, others []string) string {
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("%s stays in the cloud: like %s %s, which this Service used, it has the tag %s=%s; if nobody uses it, delete it",
		product.Name+" "+problem.Some(others), product.Name, used, mark.TagOwner, mark.DefaultName(svc.UID))
}
