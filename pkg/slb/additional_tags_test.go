package slb

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// userTags returns the tags of the CLB that are not ours.
func (w *world) userTags(name string) map[string]string {
	w.t.Helper()
	tags := w.state()[name].Tags
	maps.DeleteFunc(tags, func(key, _ string) bool { return annotation.ReservedTags.Has(key) })
	return tags
}

// TestTagsThatLeaveTheAnnotation: they go, and the user's own stay, also after a restart.
func TestTagsThatLeaveTheAnnotation(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			w.raw(api.VersionSLB, "TagResources", map[string]string{
				"ResourceType": "instance", "ResourceId.1": w.onlyCLB(), "Tag.1.Key": "mine", "Tag.1.Value": "1",
			}, nil)
			w.drift("web")
			for _, step := range []struct {
				name   string
				value  string
				writes []string
				tags   map[string]string
			}{
				{"added", "a=1,b=2,c=3", []string{"TagResources"}, map[string]string{"mine": "1", "a": "1", "b": "2", "c": "3"}},
				{"fewer", "a=1,b=3", []string{"UntagResources", "TagResources"}, map[string]string{"mine": "1", "a": "1", "b": "3"}},
				{"taken over by the annotation", "a=1,mine=2", []string{"UntagResources", "TagResources"}, map[string]string{"a": "1", "mine": "2"}},
				{"none", "", []string{"UntagResources"}, map[string]string{}},
			} {
				w.change("web", func(svc *corev1.Service) {
					annotate(svc, annotation.AdditionalTags, step.value)
					if step.value == "" {
						delete(svc.Annotations, key(annotation.AdditionalTags))
					}
				})
				if restarted {
					w.restart()
				}
				w.calls()
				w.mustPass("web")
				if diff := cmp.Diff(step.writes, writesOf(w.calls())); diff != "" {
					t.Errorf("%s: writes (-want +got):\n%s", step.name, diff)
				}
				if diff := cmp.Diff(step.tags, w.userTags("a0f5e8a1cweb")); diff != "" {
					t.Errorf("%s: tags (-want +got):\n%s", step.name, diff)
				}
				w.drift("web")
				w.mustPass("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("%s: the next pass writes %v", step.name, writes)
				}
			}
		})
	}
}

// TestTagsOnAReusedCLB: what this process wrote goes again; nothing is remembered on the CLB.
func TestTagsOnAReusedCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := reusing("web", w.makeCLB().ID, "true", 80)
	annotate(svc, annotation.AdditionalTags, "a=1,b=2")
	w.put(svc)
	w.mustPass("web")
	if diff := cmp.Diff(map[string]string{mark.TagReused: "true", "a": "1", "b": "2"}, w.state()["mine"].Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.AdditionalTags, "a=1") })
	w.mustPass("web")
	if diff := cmp.Diff(map[string]string{mark.TagReused: "true", "a": "1"}, w.state()["mine"].Tags); diff != "" {
		t.Errorf("tags after one left the annotation (-want +got):\n%s", diff)
	}
}

// TestTagIsRemovedAlthoughAnAnswerLacksIt: an answer that is older than a tag is no reason to leave the tag on the CLB for good.
func TestTagIsRemovedAlthoughAnAnswerLacksIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := reusing("web", w.makeCLB().ID, "true", 80)
	w.put(svc)
	w.mustPass("web")
	var before map[string]any
	w.raw(api.VersionSLB, "DescribeLoadBalancerAttribute", map[string]string{"LoadBalancerId": w.onlyCLB()}, &before)
	body, err := json.Marshal(before)
	w.must(err)
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.AdditionalTags, "a=1") })
	w.mustPass("web")
	w.fault(map[string]any{"action": "DescribeLoadBalancerAttribute", "body": string(body)})
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.AdditionalTags)) })
	w.mustPass("web")
	if hits := w.faultHits(); hits != 1 {
		t.Fatalf("%d answers are old, want 1", hits)
	}
	if diff := cmp.Diff(map[string]string{mark.TagReused: "true"}, w.state()["mine"].Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}
