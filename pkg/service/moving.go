package service

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionMoving on a Service is True while its status shows the load balancer that it has moved to and the one before serves, too. Its
// last transition is when the status began to show the new one, from which a new process knows how much is left of the grace.
const ConditionMoving = "service.alibabacloud.com/Moving"

// Reasons of [ConditionMoving].
const (
	servesAtBoth = "ServesAtBothAddresses"
	hasMoved     = "Moved"
)

// servesUntil stands in the message of the condition between the addresses, which a change of the grace does not change, and the end of it.
const servesUntil = ", which serves until "

// moveTo returns the condition of the move to the addresses, nil where the Service does not show them yet, or has not moved.
func moveTo(svc *corev1.Service, shown corev1.LoadBalancerStatus) *metav1.Condition {
	moving := meta.FindStatusCondition(svc.Status.Conditions, ConditionMoving)
	if moving == nil || moving.Status != metav1.ConditionTrue || !alreadyShows(svc, shown) {
		return nil
	}
	return moving
}

// movedAt returns when the Service began to show the addresses of the load balancer that it has moved to: now, unless its condition says so.
func movedAt(svc *corev1.Service, shown corev1.LoadBalancerStatus, now time.Time) time.Time {
	if moving := moveTo(svc, shown); moving != nil {
		return moving.LastTransitionTime.Time
	}
	return now
}

// showMove has the condition say that the Service has moved to the addresses, from those that its status shows before it is written.
func showMove(svc *corev1.Service, shown corev1.LoadBalancerStatus, grace time.Duration, now time.Time) {
	began := movedAt(svc, shown, now)
	move := fmt.Sprintf("The Service has moved to %s from %s", addressesOf(shown), addressesOf(svc.Status.LoadBalancer))
	if moving := moveTo(svc, shown); moving != nil {
		move, _, _ = strings.Cut(moving.Message, servesUntil)
	}
	meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionMoving) // setting it keeps the transition of an earlier move
	meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{
		Type: ConditionMoving, Status: metav1.ConditionTrue, Reason: servesAtBoth, LastTransitionTime: metav1.NewTime(began),
		Message: move + servesUntil + began.Add(grace).UTC().Format(time.RFC3339),
	})
}

// endMove has the condition say that the Service is at one place.
func endMove(svc *corev1.Service) {
	if meta.IsStatusConditionTrue(svc.Status.Conditions, ConditionMoving) {
		meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{
			Type: ConditionMoving, Status: metav1.ConditionFalse, Reason: hasMoved, Message: "The Service has left its former load balancer",
		})
	}
}

// addressesOf returns addresses as text, for people.
func addressesOf(status corev1.LoadBalancerStatus) string {
	var all []string
	for i := range status.Ingress {
		all = append(all, cmp.Or(status.Ingress[i].IP, status.Ingress[i].Hostname))
	}
	if len(all) == 0 {
		return "its former load balancer"
	}
	return strings.Join(all, ", ")
}
