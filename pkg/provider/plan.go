package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Plan is what the controllers would write to the cloud first if they started now.
type Plan struct {
	Services []ServicePlan `json:"services"`
	// Routes has one line per route entry that would be made or removed, and per source/destination check to switch off.
	Routes []string `json:"routes"`
	// Policy says which existing load balancers Services may use.
	Policy string `json:"policy,omitempty"`
	// RouteProblems are what keeps nodes from having routes, and nodes whose network would become unavailable.
	RouteProblems []string `json:"routeProblems,omitempty"`
}

// ServicePlan is the plan of one Service. Services for which there is nothing to do or to report are left out of a [Plan].
type ServicePlan struct {
	Service string        `json:"service"`
	Steps   []driver.Step `json:"steps"`
	// Follow says after what further steps follow, which cannot be planned yet.
	Follow string `json:"follow,omitempty"`
	// Problems are what the Service's events would say.
	Problems []string `json:"problems,omitempty"`
	// Error is why the Service cannot be planned; then Steps are empty, and what a pass would write is not known.
	Error string `json:"error,omitempty"`
}

// Empty reports whether nothing would be written: every Service could be planned, and there are no changes.
func (p Plan) Empty() bool {
	return len(p.Routes) == 0 && !slices.ContainsFunc(p.Services, func(s ServicePlan) bool {
		return len(s.Steps) > 0 || s.Follow != "" || s.Error != ""
	})
}

// String returns the plan for people: one line per change.
func (p Plan) String() string {
	var text strings.Builder
	for _, service := range p.Services {
		fmt.Fprintf(&text, "Service %s\n", service.Service)
		for _, step := range service.Steps {
			fmt.Fprintf(&text, "  %s\n", step)
		}
		if service.Follow != "" {
			fmt.Fprintf(&text, "  %s\n", service.Follow)
		}
		for _, problem := range service.Problems {
			fmt.Fprintf(&text, "  ! %s\n", problem)
		}
		if service.Error != "" {
			fmt.Fprintf(&text, "  ! cannot be planned: %s\n", service.Error)
		}
	}
	if p.Policy != "" {
		fmt.Fprintf(&text, "Policy: %s\n", p.Policy)
	}
	for _, route := range p.Routes {
		fmt.Fprintln(&text, route)
	}
	for _, problem := range p.RouteProblems {
		fmt.Fprintf(&text, "! %s\n", problem)
	}
	if p.Empty() {
		fmt.Fprintln(&text, "Nothing would be written.")
	}
	return text.String()
}

// Plan reads the cloud as the controllers do when they start, and writes nothing, neither to the cloud nor to the cluster: from now on, the
// client refuses to.
// The informers given to SetInformers must have synced. Routes are left out where the settings have no cluster CIDR.
func (c *Cloud) Plan(ctx context.Context) (Plan, error) {
	c.onlyReads.Store(true)
	plan := Plan{Services: []ServicePlan{}, Routes: []string{}, Policy: c.policy().String()}
	services, err := c.engines.serviceOptions.Services.Lister().List(labels.Everything())
	if err != nil {
		return plan, fmt.Errorf("list Services: %w", err)
	}
	previews, err := c.engines.services.PreviewAll(ctx, services)
	if err != nil {
		return plan, fmt.Errorf("plan the Services: %w", err)
	}
	for i := range previews {
		preview := &previews[i]
		switch {
		case preview.Err != nil: // one that cannot be planned hides no other
			unplanned := servicePlanOf(preview.Service, nil, preview.Problems)
			unplanned.Error = preview.Err.Error()
			plan.Services = append(plan.Services, unplanned)
		case len(preview.Steps)+len(preview.Problems) > 0 || preview.Follow != "":
			planned := servicePlanOf(preview.Service, preview.Steps, preview.Problems)
			planned.Follow = preview.Follow
			plan.Services = append(plan.Services, planned)
		}
	}
	slices.SortFunc(plan.Services, func(a, b ServicePlan) int { return cmp.Compare(a.Service, b.Service) })
	if len(c.settings.ClusterCIDRs) == 0 {
		return plan, nil
	}
	routes, err := c.engines.routeOps.Preview(ctx)
	if err != nil {
		return plan, fmt.Errorf("plan routes: %w", err)
	}
	plan.Routes, plan.RouteProblems = append(plan.Routes, routes.Writes...), routes.Problems
	return plan, nil
}

func servicePlanOf(svc *corev1.Service, steps []driver.Step, problems []problem.Problem) ServicePlan {
	plan := ServicePlan{Service: nameOf(svc), Steps: append([]driver.Step{}, steps...)}
	for _, problem := range problems {
		plan.Problems = append(plan.Problems, problem.Reason+": "+problem.Message)
	}
	return plan
}

func nameOf(service *corev1.Service) string { return service.Namespace + "/" + service.Name }
