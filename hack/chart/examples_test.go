package chart

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// appliesExamples applies docs/examples with the admission policy of the chart: the API server has no warning, the load balancers become
// what the Services ask for, and no event is a warning. Pods have no network interfaces in this cloud: their example is only checked here,
// and the tutorial about them applies it.
func (r *reader) appliesExamples() {
	r.Helper()
	s := &sandbox{T: r.T, url: strings.TrimSpace(r.run(`echo "$cloud"`))}
	r.run(`curl --silent --fail "$cloud/_emulator/snapshot" --output before.json && kubectl delete events --all-namespaces --all >/dev/null`)
	r.run("kubectl apply -f deploy/admission-policy.yaml && kubectl apply -f docs/examples/web.yaml && kubectl rollout status deployment web --timeout 2m")
	const bad = "kubectl create --dry-run=server -f docs/examples/clb.yaml --output name >/dev/null && kubectl annotate --local -f docs/examples/clb.yaml " +
		annotationPrefix + "loadbalancer-spec='" + refused + "' --output yaml | kubectl create --dry-run=server -f - 2>&1 || true"
	inForce := func() (output string, yes bool) {
		output = r.run(bad)
		return output, strings.Contains(output, "is not accepted")
	}
	s.until("the policy is in force", func(context.Context) string {
		output, yes := inForce()
		if !yes {
			return output
		}
		return ""
	})
	// A CLB of somebody else, for the example of an existing one.
	r.run("kubectl create service loadbalancer kept --tcp=8080:80 && kubectl annotate service kept " + annotationPrefix +
		"loadbalancer-preserve-lb-on-delete=true && address kept")
	existing := strings.TrimSpace(r.run("kubectl get service kept --output jsonpath='{.metadata.labels.service\\.k8s\\.alibaba/loadbalancer-id}{\"\\n\"}'"))
	r.run("kubectl delete service kept")
	files, err := filepath.Glob(root + "/docs/examples/*.yaml")
	if err != nil {
		r.Fatal(err)
	}
	index, err := os.ReadFile(root + "/docs/examples/README.md")
	if err != nil {
		r.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if !strings.Contains(string(index), "("+name+")") {
			r.Errorf("docs/examples/README.md lacks %s", name)
		}
		apply := "kubectl apply -f - 2>&1"
		if name == "clb-pods.yaml" {
			apply = "kubectl create --dry-run=server -f - 2>&1"
		}
		if output := r.run("sed 's/lb-1/" + existing + "/' docs/examples/" + name + " | " + apply); strings.Contains(output, "Warning") {
			r.Errorf("docs/examples/%s: %s", name, output)
		}
	}
	const unsynced = `kubectl get services --all-namespaces --field-selector spec.type=LoadBalancer ` +
		`--output jsonpath='{range .items[*]}{.metadata.name}: {.status.conditions[?(@.type=="service.alibabacloud.com/LoadBalancerSynced")]}{"\n"}{end}' | ` +
		`grep --invert-match '"status":"True"' || true`
	s.until("the load balancers match the examples", func(context.Context) string { return r.run(unsynced) })
	if output := r.run("kubectl get events --all-namespaces --field-selector type=Warning,source=service-controller,involvedObject.name!=kept --output custom-columns=NAME:.involvedObject.name,REASON:.reason,MESSAGE:.message --no-headers 2>/dev/null"); output != "" {
		r.Errorf("events of the examples:\n%s", output)
	}
	r.run(`kubectl get services --field-selector spec.type=LoadBalancer --output name | xargs kubectl delete && kubectl delete namespace ingress-nginx`)
	r.run("kubectl delete -f deploy/admission-policy.yaml")
	// An API server goes on for a moment with a policy that was deleted, and the next page has a value that it would deny.
	s.until("the policy is gone", func(context.Context) string {
		output, yes := inForce()
		if yes {
			return output
		}
		return ""
	})
	r.run(`curl --silent --show-error --fail --request PUT --data-binary @before.json "$cloud/_emulator/snapshot"`)
}
