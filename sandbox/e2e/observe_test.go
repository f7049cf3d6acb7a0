//go:build unix && fleet

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// machine is an instance as the emulator's state shows it.
type machine struct {
	InstanceID    string `json:"InstanceId"`
	InstanceName  string
	InstanceType  string
	ZoneID        string `json:"ZoneId"`
	VpcAttributes struct {
		PrivateIPAddress struct {
			IPAddress []string `json:"IpAddress"`
		} `json:"PrivateIpAddress"`
	}
}

// entry is a custom route entry of one table.
type entry struct{ table, cidr, hop, status string }

// machines lists the instances by node name.
func (w *world) machines() map[string]machine {
	w.Helper()
	var state struct{ Instances []machine }
	w.admin(http.MethodGet, "state", nil, &state)
	byName := map[string]machine{}
	for _, m := range state.Instances {
		byName[m.InstanceName] = m
	}
	return byName
}

// entries lists the custom route entries of all tables, sorted.
func (w *world) entries() []entry {
	w.Helper()
	var state struct {
		RouteTables []struct {
			RouteTableID string `json:"RouteTableId"`
			RouteEntries []struct {
				Type, Status, DestinationCidrBlock string
				NextHops                           struct {
					NextHop []struct {
						NextHopID string `json:"NextHopId"`
					}
				}
			}
		}
	}
	w.admin(http.MethodGet, "state", nil, &state)
	var all []entry
	for _, table := range state.RouteTables {
		for _, e := range table.RouteEntries {
			if e.Type != "Custom" {
				continue
			}
			hop := ""
			for _, next := range e.NextHops.NextHop {
				hop += next.NextHopID
			}
			all = append(all, entry{table.RouteTableID, e.DestinationCidrBlock, hop, e.Status})
		}
	}
	sortEntries(all)
	return all
}

func sortEntries(all []entry) {
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.table+" "+a.cidr, b.table+" "+b.cidr) })
}

// call is a call in the emulator's journal.
type call struct {
	Seq                                  int64
	Time                                 time.Time // when it arrived; it is in the journal from its end
	Product, Action, Kind, Code, Dropped string
	Status                               int
	Parameters                           map[string]string
}

// calls lists the OpenAPI calls after the one with the number given.
func (w *world) calls(after int64) []call {
	w.Helper()
	var journal struct{ Calls []call }
	w.admin(http.MethodGet, fmt.Sprintf("calls?after=%d", after), nil, &journal)
	return journal.Calls
}

// lastCall is the number of the last call so far.
func (w *world) lastCall() int64 {
	w.Helper()
	last := int64(0)
	for _, c := range w.calls(0) {
		last = max(last, c.Seq)
	}
	return last
}

// count counts the calls of an action.
func count(calls []call, action string) int {
	n := 0
	for i := range calls {
		if calls[i].Action == action {
			n++
		}
	}
	return n
}

// fault injects a fault; times 0 means until clearFaults.
func (w *world) fault(rule map[string]any) {
	w.Helper()
	w.admin(http.MethodPost, "faults", rule, nil)
}

func (w *world) clearFaults() {
	w.Helper()
	w.admin(http.MethodDelete, "faults", nil, nil)
}

// faultHits is how many calls the faults have hit.
func (w *world) faultHits() int {
	w.Helper()
	var list struct{ Faults []struct{ Hit int } }
	w.admin(http.MethodGet, "faults", nil, &list)
	hits := 0
	for _, f := range list.Faults {
		hits += f.Hit
	}
	return hits
}

// nodes lists the Nodes by name. A failed read shows none; whoever waits reads again.
func (w *world) nodes(ctx context.Context) map[string]*corev1.Node {
	list, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	byName := map[string]*corev1.Node{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName
}

func (w *world) setProviderID(node, id string) {
	w.Helper()
	patch := fmt.Sprintf(`{"spec":{"providerID":%q}}`, id)
	if _, err := w.client.CoreV1().Nodes().Patch(w.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// hasEvent reports whether a Node has an event with the reason.
func (w *world) hasEvent(ctx context.Context, node, reason string) bool {
	list, err := w.client.CoreV1().Events("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.kind": "Node", "involvedObject.name": node, "reason": reason}.String(),
	})
	return err == nil && len(list.Items) > 0
}

// countEvents is how many Nodes have an event with the reason.
func (w *world) countEvents(ctx context.Context, reason string) int {
	list, err := w.client.CoreV1().Events("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.kind": "Node", "reason": reason}.String(),
	})
	if err != nil {
		return 0
	}
	names := map[string]bool{}
	for i := range list.Items {
		names[list.Items[i].InvolvedObject.Name] = true
	}
	return len(names)
}

func statusOf(node *corev1.Node, kind corev1.NodeConditionType) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

func tainted(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}
