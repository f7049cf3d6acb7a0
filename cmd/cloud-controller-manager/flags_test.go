package main

import (
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cloud-provider/options"
)

func TestTranslateOldFlags(t *testing.T) {
	t.Parallel()
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	opts.Generic.LeaderElection.ResourceLock = "endpoints"
	opts.Generic.Controllers = []string{"node", "route", "service", "nlb", "ingress", "pvtz"}
	translateOldFlags(opts)
	if got := opts.Generic.LeaderElection.ResourceLock; got != "leases" {
		t.Errorf("lock %q, want leases", got)
	}
	want := []string{"cloud-node-controller", "cloud-node-lifecycle-controller", "route", "service", "nlb"}
	if got := opts.Generic.Controllers; !slices.Equal(got, want) {
		t.Errorf("controllers %q, want %q", got, want)
	}
}

// TestRoutePeriodDefault: at the stock default of 10 s, a large cluster reads its route tables with hundreds of calls a minute.
func TestRoutePeriodDefault(t *testing.T) { //nolint:paralleltest // see parseFlags
	for want, args := range map[time.Duration][]string{5 * time.Minute: nil, 3 * time.Minute: {"--route-reconciliation-period=3m"}} {
		opts, err := parseFlags(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := opts.KubeCloudShared.RouteReconciliationPeriod.Duration; got != want {
			t.Errorf("with %q the period is %s, want %s", args, got, want)
		}
	}
}

// TestOfficialFlagsAreAccepted goes through all flags of the official CCM, at the values of its manifests.
func TestOfficialFlagsAreAccepted(t *testing.T) { //nolint:paralleltest // see parseFlags
	for _, arg := range []string{
		"--cloud-config=/etc/kubernetes/config/cloud-config.conf", "--cloud-provider=alibabacloud", "--cloud-provider=alicloud",
		"--cluster-cidr=10.244.0.0/16", "--cluster-name=kubernetes", "--controllers=node,route,service,nlb", "--configure-cloud-routes=true",
		"--allocate-node-cidrs=true", "--concurrent-service-syncs=3", "--route-reconciliation-period=3m", "--node-monitor-period=5m",
		"--node-reconcile-batch-size=100", "--route-reconcile-batch-size=50", "--sg-batch-size=40", "--node-event-aggregation-wait-seconds=1",
		"--max-concurrent-actions=10", "--max-throttling-retry-times=10", "--skip-disable-source-dest-check=false", "--network=vpc",
		"--enable-imdsv2=true", "--dry-run=false", "--use-service-account-credentials=true", "--allow-untagged-cloud=true",
		"--kube-api-qps=20", "--kube-api-burst=30", "--metrics-bind-addr=:8080", "--health-probe-bind-addr=:10258", "--pprof-bind-addr=:6060",
		"--leader-elect=true", "--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s",
		"--leader-elect-resource-lock=endpoints", "--leader-elect-resource-name=ccm", "--leader-elect-resource-namespace=kube-system",
		"--kubeconfig=/etc/kubernetes/cloud-controller-manager.conf", "--feature-gates=", "-v=5", "--v=5", "--vmodule=a=1",
	} {
		if _, err := parseFlags(t, arg); err != nil {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// parseFlags parses the arguments as the program does. Its tests do not run in parallel: the stock command adds flags to a variable that
// all commands of a process share.
func parseFlags(t *testing.T, args ...string) (*options.CloudControllerManagerOptions, error) {
	t.Helper()
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	return opts, newCommand(opts, nil).ParseFlags(args)
}

func TestOwnFlagsRefuse(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{
		"--dry-run", "--control-plane-nodes=some", "--node-gone-confirmations=0", "--node-gone-over=-1s", "--route-table-tag=pods",
		"--route-table-tag==yes",
		"--sg-batch-size=0", "--route-reconcile-batch-size=-1", "--node-reconcile-batch-size=0", "--node-event-aggregation-wait-seconds=0",
		"--metrics-bind-addr=8080", "--health-probe-bind-addr=:http", "--pprof-bind-addr=:70000",
	} {
		flags, own := pflag.NewFlagSet("test", pflag.ContinueOnError), &ownFlags{}
		own.addTo(flags)
		if err := flags.Parse([]string{arg}); err != nil {
			t.Fatal(err)
		}
		if err := own.check(); err == nil {
			t.Errorf("%s is accepted", arg)
		}
	}
}
