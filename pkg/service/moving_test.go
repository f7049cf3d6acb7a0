package service

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestShowMove: the condition says from where to where a Service moves, since when and until when; a second move begins anew, a pass or
// another grace does not.
func TestShowMove(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	svc := &corev1.Service{}
	show := func(to corev1.LoadBalancerIngress, grace, after time.Duration) {
		status := corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{to}}
		showMove(svc, status, grace, began.Add(after))
		svc.Status.LoadBalancer = status
	}
	want := func(since time.Duration, message string) {
		t.Helper()
		found := meta.FindStatusCondition(svc.Status.Conditions, ConditionMoving)
		if found.Status != metav1.ConditionTrue || !found.LastTransitionTime.Time.Equal(began.Add(since)) || found.Message != message {
			t.Errorf("%s since %s: %q; want since %s: %q", found.Status, found.LastTransitionTime, found.Message, began.Add(since), message)
		}
	}
	first, second := corev1.LoadBalancerIngress{IP: "10.0.0.1"}, corev1.LoadBalancerIngress{Hostname: "nlb-1.example.com"}
	show(first, time.Minute, 0)
	want(0, "The Service has moved to 10.0.0.1 from its former load balancer, which serves until 2026-01-02T03:05:05Z")
	show(first, time.Hour, time.Second)
	want(0, "The Service has moved to 10.0.0.1 from its former load balancer, which serves until 2026-01-02T04:04:05Z")
	show(second, time.Minute, time.Minute)
	want(time.Minute, "The Service has moved to nlb-1.example.com from 10.0.0.1, which serves until 2026-01-02T03:06:05Z")
	endMove(svc)
	show(first, time.Minute, time.Hour)
	want(time.Hour, "The Service has moved to 10.0.0.1 from nlb-1.example.com, which serves until 2026-01-02T04:05:05Z")
}
