package slb

import (
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/annotationpage"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const annotationsPage = "../../docs/reference/annotations.md"

// TestAnnotationsPageIsFresh compares the reference page with the table that the program reads annotations by.
func TestAnnotationsPageIsFresh(t *testing.T) {
	t.Parallel()
	golden.Fresh(t, annotationsPage, renderAnnotations())
}

// TestExamplesAreAccepted puts every example of the page, with what it needs, on a Service with the ports 80 and 443: the
// program that reads annotations has nothing to say about it.
func TestExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, row := range documented() {
		c := newBuildCase(80, 443)
		c.nodes = append(c.nodes, testNode("c", labeled("pool", "web")))
		c.svc.Annotations = explanations.Example(row, firstOf(row))
		_, problems := c.build()
		problems = slices.DeleteFunc(problems, func(p problem.Problem) bool {
			return row.Suffix == annotation.Type && p.Reason == problem.ReasonAnnotationNoEffect // the gate is not an annotation
		})
		if len(problems) > 0 {
			t.Errorf("%s: %v", row.Suffix, problems)
		}
	}
}

// TestEveryAnnotationIsExplained, in one sentence and with a second value that can be changed to.
func TestEveryAnnotationIsExplained(t *testing.T) {
	t.Parallel()
	for _, missing := range explanations.Incomplete(documented()) {
		t.Error(missing)
	}
}

func renderAnnotations() string {
	var page strings.Builder
	page.WriteString(annotationpage.Title("Annotations of Services") + annotationpage.Prefixes())
	page.WriteString(`
An empty value means that the annotation is not set. A list has at most 8 kB. An invalid value causes one Warning event on the Service. While the manager
runs, the last valid value applies; after a restart, the settings in the cloud stay. "Waits if invalid" is what has to wait for a valid value: the creation of
the load balancer or of those listeners, new backends and weights, or the status. Everything else is applied. A valid value that does not apply to the Service,
and a change that is not possible later, also cause an event.

"Removed" is the setting after you remove the annotation; empty means that the setting stays. An existing load balancer keeps its own settings, and its
listeners revert only if force-override-listeners is true. "Example" includes the other annotations that the annotation requires.
`)
	page.WriteString(explanations.Section("Load balancer", annotation.InstanceAnnotations()))
	page.WriteString(explanations.Section("Listeners", annotation.ListenerTable()))
	page.WriteString(explanations.Section("Backends", append(annotation.BackendAnnotations(), annotationpage.BackendType)))
	page.WriteString("\nThe key of `" + annotation.BackendType + "` has no prefix. The golden files in\n" +
		"[pkg/slb/testdata/golden](../../pkg/slb/testdata/golden) show the effect of each annotation, of its change and of its removal.\n")
	return page.String()
}
