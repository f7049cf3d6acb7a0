package nlb

import (
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/annotationpage"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

const annotationsPage = "../../docs/reference/annotations-nlb.md"

// TestNLBAnnotationsPageIsFresh compares the reference page with the table that the program reads annotations by.
func TestNLBAnnotationsPageIsFresh(t *testing.T) {
	t.Parallel()
	golden.Fresh(t, annotationsPage, renderAnnotations())
}

// TestNLBExamplesAreAccepted puts every example of the page, with what it needs, on a Service: there is nothing to say about it.
func TestNLBExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, row := range documented() {
		svc := newService("web", testkube.TCP(80, 443))
		for key, value := range explanations.Example(row, explanations.FirstOf(row)) {
			svc.Annotations[key] = value
		}
		delete(svc.Annotations, annotation.Type.Key()) // the gate is not an annotation
		if params, problems := annotation.OfNLB(svc); len(problems) > 0 ||
			row.Suffix != annotation.Type && row.Suffix != annotation.BackendType && !params.Has(row.Suffix) {
			t.Errorf("%s: %v", row.Suffix, problems)
		}
	}
}

// TestEveryNLBAnnotationIsExplained, in one sentence and with a second value that can be changed to.
func TestEveryNLBAnnotationIsExplained(t *testing.T) {
	t.Parallel()
	for _, missing := range explanations.Incomplete(documented()) {
		t.Error(missing)
	}
}

// documented are the rows of the reference page.
func documented() []annotation.Row {
	return append(slices.Clone(annotation.NLBTable()), annotationpage.BackendType)
}

func renderAnnotations() string {
	var balancer, listeners, groups []annotation.Row
	for _, row := range documented() {
		switch {
		case row.Scope == annotation.ScopeListeners && row.Suffix != annotation.ForceOverrideListeners:
			listeners = append(listeners, row)
		case row.Suffix == annotation.BackendType, slices.Contains(groupSettings, row.Suffix), row.Scope == annotation.ScopeBackends:
			groups = append(groups, row)
		default:
			balancer = append(balancer, row)
		}
	}
	return annotationpage.Title("Annotations of Services with an NLB") + `
These annotations act on Services with ` + "`spec.loadBalancerClass: alibabacloud.com/nlb`" + `. Prefixes, invalid values and the columns of the tables are as in
[Annotations of Services](annotations.md), which are for CLBs. An annotation that only applies to CLBs causes an event, which names the corresponding
annotation of NLBs if there is one.

Without ` + "`loadbalancer-zone-maps` and `nlbZoneMaps`" + ` in the cloud-config, a new NLB is created in the two zones with the most nodes, in each in the
vSwitch of nodes with the most free addresses, and stays there; an NLB of a group needs one of the two.

An empty security-group-ids means no group. For the protocols and port ranges of listeners, the type of server groups, the IP version of backend servers
and default weights, the default applies without the annotation.
` + explanations.Section("Load balancer", balancer) + explanations.Section("Listeners", listeners) +
		explanations.Section("Server groups and backend servers", groups) +
		"\nThe key of `" + annotation.BackendType + "` has no prefix.\n"
}

// groupSettings are the annotations that set a server group, and stop nothing else.
var groupSettings = []annotation.Suffix{
	annotation.Scheduler, annotation.ConnectionDrain, annotation.ConnectionDrainTimeout, annotation.PreserveClientIP,
	annotation.HealthCheckFlag, annotation.HealthCheckType,
	annotation.HealthCheckConnectPort, annotation.HealthCheckConnectTimeout, annotation.HealthCheckInterval, annotation.HealthyThreshold,
	annotation.UnhealthyThreshold,
	annotation.HealthCheckURI, annotation.HealthCheckDomain, annotation.HealthCheckMethod, annotation.HealthCheckHTTPCode,
	annotation.HealthCheckHTTPVersion, annotation.HealthCheck, annotation.GracefulShutdown,
}
