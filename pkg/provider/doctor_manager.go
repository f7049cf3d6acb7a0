package provider

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/leadership"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb"
)

// ElectionLease is the Lease of the leader election, without a name where there is no election.
type ElectionLease struct {
	Namespace, Name string
	// RetryPeriod is the time between two renewals.
	RetryPeriod time.Duration
}

// leader checks that somebody manages the cluster.
func (e *examination) leader(ctx context.Context) {
	const subject = "leader"
	lease := e.settings.Lease
	if lease.Name == "" {
		e.add(doctor.AreaManager, subject, doctor.NotChecked,
			"leader election is switched off, so nothing in the cluster says whether a manager runs", "")
		return
	}
	name := lease.Namespace + "/" + lease.Name
	found, err := leadership.FindLeader(ctx, e.kube.CoordinationV1().Leases(lease.Namespace), lease.Name, 2*lease.RetryPeriod) //nolint:mnd // one renewal may be late
	detail := fmt.Sprintf("nobody holds Lease %s, so nothing manages the cluster", name)
	switch {
	case err != nil:
		e.add(doctor.AreaManager, subject, doctor.NotChecked, fmt.Sprintf("read Lease %s: %v", name, err), "")
		return
	case found.Leads:
		e.add(doctor.AreaManager, subject, doctor.OK,
			fmt.Sprintf("%s for %s, renewed %s ago", found.Holder, ago(found.Acquired), ago(found.RenewTime)), "")
		return
	case found.Holder != "":
		detail = fmt.Sprintf("%s no longer renews Lease %s, last %s ago, so nothing manages the cluster", found.Holder, name,
			ago(found.RenewTime))
	}
	e.add(doctor.AreaManager, subject, doctor.Wrong, detail,
		"start the manager; if its pods run, their logs say why none of them leads: kubectl --namespace "+lease.Namespace+
			" logs --selector k8s-app=cloud-controller-manager")
}

// ago is how long something has been so.
func ago(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return duration.HumanDuration(max(time.Since(t), 0))
}

// unsynced is why a Service does not match its load balancer.
type unsynced struct {
	name, reason, message string
	since                 time.Time
}

// unsyncedOf reports whether a Service does not match its load balancer, as far as the Service itself says. A paused one is not meant to.
func unsyncedOf(svc *corev1.Service) (unsynced, bool) {
	found := unsynced{name: nameOf(svc), since: svc.CreationTimestamp.Time}
	condition := meta.FindStatusCondition(svc.Status.Conditions, service.ConditionSynced)
	switch {
	case svc.DeletionTimestamp != nil:
		found.since, found.reason, found.message = svc.DeletionTimestamp.Time, "Deleting", "the Service is being deleted, and its load balancer still exists"
		return found, time.Since(found.since) > settled
	case condition == nil:
		found.reason, found.message = "NeverReconciled", "no manager has reconciled the Service yet"
		return found, !found.since.IsZero() && time.Since(found.since) > settled
	}
	found.since, found.reason, found.message = condition.LastTransitionTime.Time, condition.Reason, condition.Message
	return found, condition.Status != metav1.ConditionTrue && condition.Reason != problem.ReasonPaused
}

const (
	// unsyncedShown is how many Services are shown that are not in sync: those that have been so for the longest time.
	unsyncedShown = 5
	// maxDetail is how many bytes of a Service's condition are shown.
	maxDetail = 300
)

// services lists the Services that do not match their load balancers.
func (e *examination) services(list []corev1.Service) {
	total := 0
	var behind []unsynced
	for i := range list {
		svc := &list[i]
		if _, ours := e.productOf(svc); !ours && !driver.HasFinalizer(svc, slb.Finalizer) && !driver.HasFinalizer(svc, nlb.Finalizer) {
			continue
		}
		total++
		if found, is := unsyncedOf(svc); is {
			behind = append(behind, found)
		}
	}
	slices.SortStableFunc(behind, func(a, b unsynced) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name)) })
	for _, found := range behind[:min(len(behind), unsyncedShown)] {
		e.add(doctor.AreaServices, found.name, doctor.Wrong,
			fmt.Sprintf("%s for %s: %s", found.reason, ago(found.since), problem.Cut(found.message, maxDetail)),
			"cloud-controller-manager explain "+found.name)
	}
	if len(behind) > unsyncedShown {
		others := behind[unsyncedShown:]
		e.add(doctor.AreaServices, fmt.Sprintf("%d others", len(others)), doctor.Wrong, reasonsOf(others), "")
	}
	e.add(doctor.AreaServices, "in sync", doctor.OK, fmt.Sprintf("%d of %d", total-len(behind), total), "")
}

// reasonsOf counts Services by reason.
func reasonsOf(all []unsynced) string {
	count := map[string]int{}
	for _, found := range all {
		count[found.reason]++
	}
	var texts []string
	for _, reason := range slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) }) {
		texts = append(texts, fmt.Sprintf("%d %s", count[reason], reason))
	}
	return strings.Join(texts, ", ")
}
