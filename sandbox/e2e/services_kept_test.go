//go:build unix && fleet

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const annotationFamily = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"

// unservedCostsNothing: a Service with nothing but SCTP gets one event and no CLB; one that had a better port before keeps its CLB
// without listeners until it goes.
func (w *world) unservedCostsNothing() {
	w.Helper()
	mark := w.lastCall()
	w.createService("sctp", nil, corev1.ProtocolSCTP)
	w.isSynced("sctp", metav1.ConditionFalse, problem.ReasonFeatureNotSupported)
	w.until("one event", eventDeadline, func(ctx context.Context) string {
		return w.eventsOf(ctx, "sctp", problem.ReasonFeatureNotSupported, 1)
	})
	for _, c := range w.calls(mark) {
		if c.Kind == "write" {
			w.Errorf("a Service that cannot be served costs %+v", c)
		}
	}
	w.patchWeb("sctp", `{"spec":{"ports":[{"port":80,"protocol":"TCP"}]}}`)
	address := w.served("sctp").Status.LoadBalancer.Ingress[0].IP
	w.patchWeb("sctp", `{"spec":{"ports":[{"port":80,"protocol":"SCTP"}]}}`)
	w.isSynced("sctp", metav1.ConditionFalse, problem.ReasonFeatureNotSupported)
	if left := w.balancers(); len(left) != 1 || len(left[0].Listeners) != 0 {
		w.Errorf("CLBs %+v, want the old one without listeners", left)
	}
	w.patchWeb("sctp", `{"spec":{"ports":[{"port":80,"protocol":"TCP"}]}}`)
	if now := w.served("sctp").Status.LoadBalancer.Ingress[0].IP; now != address {
		w.Errorf("address %s, want %s as before", now, address)
	}
	w.deleteWeb("sctp")
	w.serviceIsGone("sctp")
	w.noBalancers("sctp")
}

// existingCLBKeepsNothing: what a Service has written on an existing CLB goes when it leaves the annotations while no manager runs;
// the user's own tag stays.
func (w *world) existingCLBKeepsNothing() {
	w.Helper()
	w.asPerson(api.VersionSLB, "CreateLoadBalancer", map[string]string{
		"LoadBalancerName": "mine", "AddressType": "intranet", "VpcId": "vpc-emulator", "VSwitchId": "vsw-a", "Tag.1.Key": "mine",
		"Tag.1.Value": "1",
	})
	id := w.balancers()[0].LoadBalancerID
	w.createService("joining", map[string]string{
		annotationFamily + "id": id, annotationFamily + "force-override-listeners": "true",
		annotationFamily + "additional-resource-tags": "team=a", annotationFamily + "scheduler": "wlc",
	}, corev1.ProtocolTCP)
	w.served("joining")
	w.tagsAre("as asked for", "kubernetes.reused.by.user mine team")
	w.stopManager()
	w.patchWeb("joining",
		fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null}}}`, annotationFamily+"additional-resource-tags", annotationFamily+"scheduler"))
	w.startManager(routed...)
	w.tagsAre("after the annotation went", "kubernetes.reused.by.user mine")
	w.until("the scheduler is the default again", eventDeadline, func(context.Context) string {
		if got := w.balancers()[0].Listeners[0].Scheduler; got != "rr" {
			return got
		}
		return ""
	})
	w.until("nothing is remembered", eventDeadline, func(ctx context.Context) string {
		svc, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "joining", metav1.GetOptions{})
		if err != nil || meta.FindStatusCondition(svc.Status.Conditions, driver.ConditionWritten) != nil {
			return fmt.Sprintf("%v, %+v", err, svc.Status.Conditions)
		}
		return ""
	})
	w.deleteWeb("joining")
	w.serviceIsGone("joining")
	if left := w.balancers(); len(left) != 1 || len(left[0].Listeners)+len(left[0].VServerGroups) != 0 {
		w.Errorf("left on the user's CLB: %+v", left)
	}
	w.asPerson(api.VersionSLB, "DeleteLoadBalancer", map[string]string{"LoadBalancerId": id})
}

// tagsAre waits until the only CLB has these tag keys and no others.
func (w *world) tagsAre(when, keys string) {
	w.Helper()
	w.until("tags "+when, eventDeadline, func(context.Context) string {
		var state struct {
			LoadBalancers []struct {
				Tags struct{ Tag []struct{ TagKey string } }
			}
		}
		w.admin(http.MethodGet, "state", nil, &state)
		var have []string
		for _, tag := range state.LoadBalancers[0].Tags.Tag {
			have = append(have, tag.TagKey)
		}
		slices.Sort(have)
		if got := strings.Join(have, " "); got != keys {
			return got
		}
		return ""
	})
}

// isSynced waits until the condition of a Service is as wanted.
func (w *world) isSynced(name string, status metav1.ConditionStatus, reason string) {
	w.Helper()
	w.until(name+" shows "+reason, eventDeadline, func(ctx context.Context) string {
		svc, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		found := meta.FindStatusCondition(svc.Status.Conditions, service.ConditionSynced)
		if found == nil || found.Status != status || found.Reason != reason {
			return fmt.Sprintf("%+v", found)
		}
		return ""
	})
}

// eventsOf says how far the events on a Service are from what is wanted.
func (w *world) eventsOf(ctx context.Context, name, reason string, want int) string {
	events, err := w.client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + name + ",reason=" + reason,
	})
	if err != nil || len(events.Items) != want {
		return fmt.Sprintf("%d events, %v", len(events.Items), err)
	}
	return ""
}
