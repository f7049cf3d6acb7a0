package slb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

const goldenDir = "testdata/golden"

// TestGolden creates a Service with each annotation, changes the annotation and removes it, in the emulated cloud, and
// compares the wanted state and the printed plans with a file. After each step nothing more is written.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, row := range documented() {
		t.Run(string(row.Suffix), func(t *testing.T) {
			t.Parallel()
			golden.Fresh(t, filepath.Join(goldenDir, goldenName(row.Suffix)), writeStory(t, row))
		})
	}
}

// TestGoldenFilesAreThoseOfTheTable: an annotation without a file is untested, a file without annotation is stale.
func TestGoldenFilesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	var want, have []string
	for _, row := range documented() {
		want = append(want, goldenName(row.Suffix))
	}
	entries, err := os.ReadDir(goldenDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		have = append(have, entry.Name())
	}
	slices.Sort(want)
	if diff := gocmp.Diff(want, have); diff != "" {
		t.Errorf("files of %s (-want +got):\n%s", goldenDir, diff)
	}
}

func goldenName(suffix annotation.Suffix) string {
	return strings.TrimPrefix(filepath.Base(string(suffix)), annotation.FamilyStart) + ".txt"
}

// goldenWorld is a cloud with everything that the examples name, and how their names are read and written there.
type goldenWorld struct {
	*world
	names *scrubber
}

func newGoldenWorld(t *testing.T) goldenWorld {
	t.Helper()
	w := newWorld(t)
	threeNodes(w)
	w.deleteNode("c")
	w.putNode(testNode("c", labeled("pool", "web"), labeled("team", "web"), labeled("stage", "test")))
	w.deleteNode("b")
	w.putNode(testNode("b", labeled("pool", "shop")))
	if _, err := w.emulator.PutInstance("i-six", emulator.InstanceSpec{IPv6s: []string{"2001:db8::6"}}); err != nil {
		t.Fatal(err)
	}
	for _, port := range goldenService().Spec.Ports {
		four, six := testSlice(port, w.addressOf("i-a")+"@a"), testSlice(port, "2001:db8::6@a")
		four.Name, six.Name, six.AddressType = "web-four-"+port.Name, "web-six-"+port.Name, discoveryv1.AddressTypeIPv6
		w.putSlice(four)
		w.putSlice(six)
	}
	g := goldenWorld{world: w, names: &scrubber{known: map[string]string{"vsw-a": "vsw-1", "vsw-b": "vsw-2"}, counts: map[string]int{}}}
	first := w.makeCLB().ID
	g.names.of(first)
	g.names.of(w.makeGroup(first, "shared", "9.9.9.9"))
	g.names.of(w.makeCLB().ID)
	w.calls()
	return g
}

// goldenService has two TCP ports and no annotation.
func goldenService() *corev1.Service {
	svc := testService("web", 80, 443)
	svc.Annotations = map[string]string{}
	return svc
}

// writeStory creates, changes and removes.
func writeStory(t *testing.T, row annotation.Row) string {
	t.Helper()
	g := newGoldenWorld(t)
	var text strings.Builder
	svc := goldenService()
	svc.Annotations = g.annotations(explanations.Example(row, firstOf(row)))
	g.put(svc)
	text.WriteString("# create\n\n")
	g.chapter(&text, true)
	if second := secondOf(row); second != "" {
		fmt.Fprintf(&text, "\n# change\n\n")
		g.change("web", func(svc *corev1.Service) { svc.Annotations = g.annotations(explanations.Example(row, second)) })
		g.chapter(&text, false)
		// What is removed is the first value again: the second is often the default, to which nothing goes back.
		g.change("web", func(svc *corev1.Service) { svc.Annotations = g.annotations(explanations.Example(row, firstOf(row))) })
		g.carryOut()
	}
	text.WriteString("\n# remove\n\n")
	g.change("web", func(svc *corev1.Service) { delete(svc.Annotations, keyOf(row.Suffix)) })
	g.chapter(&text, false)
	return text.String()
}

// annotations puts the ids of this cloud in the place of the names in the examples.
func (g goldenWorld) annotations(example map[string]string) map[string]string {
	named := map[string]string{}
	for key, value := range example {
		for id, name := range g.names.known {
			value = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(value, id)
		}
		named[key] = value
	}
	return named
}

// chapter writes the Service, what is wanted, and the plan, and carries it out.
func (g goldenWorld) chapter(text *strings.Builder, withModel bool) {
	g.t.Helper()
	svc := g.get("web")
	var body strings.Builder
	for _, key := range slices.Sorted(maps.Keys(svc.Annotations)) {
		fmt.Fprintf(&body, "%s: %s\n", key, svc.Annotations[key])
	}
	preview, desired := g.wanted(g.t.Context(), svc)
	if withModel && desired != nil {
		fmt.Fprintf(&body, "\nmodel:\n%s", indented(modelText(desired)))
	}
	fmt.Fprintf(&body, "\nplan:\n%s", indented(cmp.Or(strings.Join(linesOf(preview.Steps), "\n"), "nothing")))
	for _, found := range preview.Problems {
		fmt.Fprintf(&body, "\n%s %s: %s\n", problem.EventType(found.Reason), found.Reason, found.Message)
	}
	if preview.Err != nil {
		fmt.Fprintf(&body, "\nfails: %v\n", preview.Err)
	}
	text.WriteString(g.names.scrub(body.String()))
	g.carryOut()
}

// wanted is what a program that has just started would do, and what it would want first.
func (g goldenWorld) wanted(ctx context.Context, svc *corev1.Service) (service.Preview, *model.Model) {
	previews, err := g.PreviewAll(ctx, []*corev1.Service{svc})
	if err != nil {
		g.t.Fatal(err)
	}
	if previews[0].Plan == nil {
		return previews[0], nil
	}
	return previews[0], previews[0].Plan.(plan).desired //nolint:forcetypeassert // it is one
}

// carryOut makes passes until nothing is written any more: the second one writes nothing.
func (g goldenWorld) carryOut() {
	g.t.Helper()
	var config *problem.ConfigError
	if err := g.pass("web"); err != nil && !errors.As(err, &config) {
		g.t.Fatal(err)
	}
	g.calls()
	g.drift("web")
	if err := g.pass("web"); err != nil && !errors.As(err, &config) {
		g.t.Fatal(err)
	}
	if writes := writesOf(g.calls()); len(writes) > 0 {
		g.t.Errorf("the next pass writes %v", writes)
	}
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// modelText shows a wanted state for people.
func modelText(m *model.Model) string {
	var text strings.Builder
	if m.Reused {
		fmt.Fprintf(&text, "CLB of the user, its listeners ours: %v\n", m.Override)
	}
	fmt.Fprintf(&text, "new CLB: %s\n", fieldsText(m.Create))
	fmt.Fprintf(&text, "managed: %s\n", fieldsText(m.LoadBalancer))
	if len(m.VSwitchIDs) > 0 {
		fmt.Fprintf(&text, "vSwitches: %s\n", strings.Join(m.VSwitchIDs, " "))
	}
	for _, listener := range m.Listeners {
		fmt.Fprintf(&text, "listener %s to %s\n  new: %s\n", listener.ListenerKey, listener.Group, diff.ListenerText(listener.Create))
		if managed := diff.ListenerText(listener.Attributes); managed != "" {
			fmt.Fprintf(&text, "  managed: %s\n", managed)
		}
		for _, extension := range listener.Extensions {
			fmt.Fprintf(&text, "  %s: %s\n", extension.Domain, extension.CertificateID)
		}
	}
	for _, group := range m.Groups {
		fmt.Fprintf(&text, "group %s\n", group.Name)
		for _, server := range group.Backends {
			fmt.Fprintf(&text, "  %s\n", server)
		}
		if group.KeepWeights {
			text.WriteString("  weights stay\n")
		}
	}
	return text.String()
}

// fieldsText shows the fields of a struct that are set.
func fieldsText(v any) string {
	value := reflect.ValueOf(v)
	var texts []string
	for i := range value.NumField() {
		if field := value.Field(i); !field.IsZero() {
			texts = append(texts, fmt.Sprintf("%s=%v", value.Type().Field(i).Name, field.Interface()))
		}
	}
	return strings.Join(texts, " ")
}

// scrubber gives random ids names that are the same in every run.
type scrubber struct {
	known  map[string]string
	counts map[string]int
}

func (s *scrubber) of(id string) string {
	if name, ok := s.known[id]; ok {
		return name
	}
	kind, _, _ := strings.Cut(id, "-")
	s.counts[kind]++
	s.known[id] = fmt.Sprintf("%s-%d", kind, s.counts[kind])
	return s.known[id]
}

var randomID = regexp.MustCompile(`\b(vsw-[ab]|(lb|rsp|acl|eni)-[a-z0-9]{20})\b`)

func (s *scrubber) scrub(text string) string { return randomID.ReplaceAllStringFunc(text, s.of) }
