package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// selected are the specs of Kubernetes' test/e2e/network that make a load balancer: two groups and a single one.
	selected = `\[sig-network\] (LoadBalancers|Services should fail health check node port if there are only terminating endpoints)`
	// patience is how long a spec may take that has no limit of its own: its rolling updates wait a minute for each pod.
	patience = 25 * time.Minute
	// cleanUp is how long a spec has to remove what it made when its time is over.
	cleanUp = 2 * time.Minute
)

// suite is the program with Kubernetes' specs.
type suite struct {
	cluster

	binary string
	// logs is the directory for what each spec prints.
	logs string
	// resolvConf names the name server of the client in the internet.
	resolvConf string
}

// list asks the program for its specs of load balancers: what Ginkgo calls them, by what specs.go does.
func (s suite) list(ctx context.Context) (map[string]string, error) {
	report := filepath.Join(s.logs, "list.json")
	cmd := exec.CommandContext(ctx, s.binary, "--ginkgo.dry-run", "--ginkgo.focus="+selected, "--ginkgo.json-report="+report)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("list the specs (hack/k8s-e2e/build.sh makes the program): %w\n%s", err, out)
	}
	reports, err := readReport(report)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, r := range reports {
		if r.LeafNodeType == "It" && r.State == passed { // in a dry run, those that were chosen
			names[plain(r.name())] = r.name()
		}
	}
	return names, nil
}

// runAll runs specs, some at a time, each in a process of its own: so that each has its own output and its own time.
func (s suite) runAll(ctx context.Context, all []spec, names map[string]string, parallel int) []result {
	results := make([]result, len(all))
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i, spec := range all {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			results[i] = s.run(ctx, spec, names[spec.name])
			say("%s: %s (%s)", results[i].state, spec.name, results[i].took.Round(time.Second))
		})
	}
	group.Wait()
	return results
}

// run runs one spec in the network of a client in the internet.
func (s suite) run(ctx context.Context, spec spec, name string) result {
	r := result{spec: spec, state: failed, log: filepath.Join(s.logs, fileName(spec.name)+".log")}
	limit := patience
	if spec.limit > 0 {
		limit = spec.limit
	}
	report := strings.TrimSuffix(r.log, ".log") + ".json"
	output, err := os.Create(r.log)
	if err == nil {
		defer output.Close()
		err = os.RemoveAll(report) // of an earlier run: it must not pass for this one's
	}
	if err != nil {
		r.message = err.Error()
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, limit+cleanUp)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "--net="+s.namespace, "unshare", "--mount", "sh", "-c",
		`mount --bind "$0" /etc/resolv.conf && exec "$@"`,
		s.resolvConf, s.binary, "--kubeconfig="+s.kubeconfig(), "--host="+s.server,
		"--kubectl-path="+s.kubectl, "--ginkgo.focus="+regexp.QuoteMeta(name)+"$", "--ginkgo.timeout="+limit.String(), "--ginkgo.no-color",
		"--ginkgo.v", "--ginkgo.json-report="+report)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // on which Ginkgo cleans up
	cmd.WaitDelay = cleanUp
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begin := time.Now()
	err = cmd.Run()
	r.took = time.Since(begin)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.message = err.Error()
		return r
	}
	r.state, r.message = outcomeOf(report, name)
	return r
}

// outcomeOf reads what became of a spec.
func outcomeOf(path, name string) (state, message string) {
	reports, err := readReport(path)
	if err != nil {
		return failed, err.Error()
	}
	for _, r := range reports {
		if r.LeafNodeType == "BeforeSuite" && r.State != passed {
			return failed, r.Failure.Message
		}
		if r.name() != name {
			continue
		}
		if r.State != passed && r.State != skipped {
			return failed, r.State + ": " + r.Failure.Message
		}
		return r.State, r.Failure.Message
	}
	return failed, "the report does not name it"
}

// specReport is what is used of Ginkgo's.
type specReport struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	Failure                 struct{ Message string }
}

func (r specReport) name() string {
	return strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " ")
}

func readReport(path string) ([]specReport, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the report of the specs: %w", err)
	}
	var suites []struct{ SpecReports []specReport }
	if err := json.Unmarshal(content, &suites); err != nil || len(suites) != 1 {
		return nil, fmt.Errorf("the report %s is not one of one suite: %w", path, err)
	}
	return suites[0].SpecReports, nil
}
