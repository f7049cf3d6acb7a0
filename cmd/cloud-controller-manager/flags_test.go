package main

import (
	"slices"
	"testing"

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
	opts.Generic.Controllers = []string{"node", "route", "service", "nlb"}
	translateOldFlags(opts)
	if got := opts.Generic.LeaderElection.ResourceLock; got != "leases" {
		t.Errorf("lock %q, want leases", got)
	}
	want := []string{"cloud-node-controller", "cloud-node-lifecycle-controller", "route", "service"}
	if got := opts.Generic.Controllers; !slices.Equal(got, want) {
		t.Errorf("controllers %q, want %q", got, want)
	}
}

func TestOfficialFlagsAreAccepted(t *testing.T) {
	t.Parallel()
	flags, own := pflag.NewFlagSet("test", pflag.ContinueOnError), &ownFlags{}
	own.addTo(flags)
	err := flags.Parse([]string{
		"--node-reconcile-batch-size=100", "--route-reconcile-batch-size=50", "--sg-batch-size=40", "--max-concurrent-actions=10",
		"--max-throttling-retry-times=10", "--node-event-aggregation-wait-seconds=1", "--metrics-bind-addr=:8080",
		"--health-probe-bind-addr=:10258", "--pprof-bind-addr=:6060", "--enable-imdsv2=true", "--network=vpc",
		"--skip-disable-source-dest-check", "--dry-run=false",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := own.check(); err != nil {
		t.Error(err)
	}
}

func TestOwnFlagsRefuse(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--dry-run", "--control-plane-nodes=some", "--node-gone-confirmations=0", "--node-gone-over=-1s", "--route-table-tag=pods", "--route-table-tag==yes"} {
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
