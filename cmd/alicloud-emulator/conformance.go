package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// conformanceFlags are the command line of conformance.
type conformanceFlags struct {
	endpoint, region, vpc, image, instanceType, role, out, tag string
	vSwitches, products                                        []string
	real, yes, clean                                           bool
	budget                                                     float64
}

func parseConformance(args []string) (conformanceFlags, error) {
	var f conformanceFlags
	set := pflag.NewFlagSet("alicloud-emulator conformance [clean]", pflag.ContinueOnError)
	set.StringVar(&f.endpoint, "endpoint", "",
		"URL of an emulator, whose clock is set forward by more than 26 hours; without --endpoint and --real, one is started in this process")
	set.BoolVar(&f.real, "real", false, "run on the account of ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET")
	set.BoolVar(&f.yes, "yes", false, "with --real: make the calls; without it, print calls and price")
	set.StringSliceVar(&f.products, "products", nil, "products to check: slb, nlb, vpc, ecs, sts, quotas (default: all)")
	set.Float64Var(&f.budget, "budget", 100, "with --real: the most that the run may cost, in CNY")
	set.StringVar(&f.region, "region", "cn-hangzhou", "region")
	set.StringVar(&f.vpc, "vpc", "vpc-emulator", "a VPC that was made for the run, without instances")
	set.StringSliceVar(&f.vSwitches, "vswitches", []string{"vsw-a", "vsw-b"}, "two vSwitches of the VPC in different zones")
	set.StringVar(&f.image, "image", "aliyun_3_x64_20G_alibase_20240528.vhd", "image of the instances that are created")
	set.StringVar(&f.instanceType, "instance-type", "ecs.t6-c1m1.large", "type of the instances that are created")
	set.StringVar(&f.role, "role", "", "ARN of a role that the key can assume; without it, STS is checked in part")
	set.StringVar(&f.out, "out", "", "file to write the recording to")
	set.StringVar(&f.tag, "tag", "", "value of the tag of everything that the run makes (default: random); clean removes what has it, by default of all runs")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() == 1 && set.Arg(0) == "clean" {
		f.clean = true
	} else if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return f, f.check(set.Changed)
}

func (f *conformanceFlags) check(given func(string) bool) error {
	switch {
	case f.real && f.endpoint != "":
		return errors.New("--real and --endpoint exclude each other")
	case f.clean && !f.real && f.endpoint == "":
		return errors.New("clean needs --real or --endpoint")
	case f.calls() && (!given("vpc") || !given("vswitches")):
		return errors.New("--real needs --vpc and --vswitches of a VPC that was made for the run")
	case len(f.vSwitches) != 2:
		return errors.New("--vswitches needs two IDs")
	}
	if f.tag == "" && !f.clean {
		f.tag = strings.ToLower(rand.Text()[:8])
	}
	return f.checkProducts()
}

// calls reports whether scenarios run on an account.
func (f *conformanceFlags) calls() bool { return f.real && f.yes && !f.clean }

func (f *conformanceFlags) checkProducts() error {
	for _, p := range f.products {
		if !slices.Contains([]string{"slb", "nlb", "vpc", "ecs", "sts", "quotas"}, p) {
			return fmt.Errorf("--products %s: known are slb, nlb, vpc, ecs, sts, quotas", p)
		}
	}
	return nil
}

// plan prints what a run on an account will call and cost, and refuses one that costs too much.
func (f *conformanceFlags) plan(ctx context.Context, out io.Writer) error {
	plan, err := conformance.DryRun(ctx, f.products)
	if err == nil {
		err = plan.Write(out)
	}
	switch {
	case err != nil:
		return err
	case plan.Price > f.budget:
		return fmt.Errorf("the run may cost %.2f CNY, more than --budget %.2f", plan.Price, f.budget)
	case !f.yes:
		_, err = fmt.Fprintln(out, "nothing was called: run again with --yes")
	}
	return err
}

// runConformance checks the facts on an emulator or on an account.
func runConformance(ctx context.Context, args []string, out io.Writer) error {
	f, err := parseConformance(args)
	if err != nil {
		return err
	}
	if f.real && !f.clean {
		if err = f.plan(ctx, out); err != nil || !f.yes {
			return err
		}
	}
	if !f.real && f.endpoint == "" {
		return f.inProcess(ctx, out)
	}
	o, err := f.options(out)
	if err != nil {
		return err
	}
	if f.clean {
		removed, err := conformance.Clean(ctx, o)
		for _, r := range removed {
			fmt.Fprintln(out, "removed", r)
		}
		return err
	}
	fmt.Fprintf(out, "everything that is created has the tag %s=%s\n", conformance.TagKey, f.tag)
	return f.record(ctx, o, out)
}

// settleTime is how long changes take in the emulator of this process.
const settleTime = 20 * time.Millisecond

func (f *conformanceFlags) inProcess(ctx context.Context, out io.Writer) error {
	e, o, err := conformance.Emulated(settleTime)
	if err != nil {
		return err
	}
	defer e.Close()
	o.Products, o.Log = f.products, out
	d, err := conformance.Run(ctx, o)
	return errors.Join(err, f.report(d, out))
}

// record runs on something outside of this process, and removes what it made for all scenarios.
func (f *conformanceFlags) record(ctx context.Context, o conformance.Options, out io.Writer) error {
	var d conformance.Document
	ready, err := conformance.Setup(ctx, o)
	if err == nil {
		d, err = conformance.Run(ctx, ready)
	}
	_, left := conformance.Clean(context.WithoutCancel(ctx), o)
	return errors.Join(err, left, f.report(d, out))
}

// options are those for an emulator elsewhere, or for an account.
func (f *conformanceFlags) options(out io.Writer) (conformance.Options, error) {
	o := conformance.Options{
		Products: f.products, Log: out, Tag: f.tag,
		Environment: conformance.Environment{
			Region: f.region, VPC: f.vpc, VSwitches: [2]string(f.vSwitches), Image: f.image, InstanceType: f.instanceType, Role: f.role,
		},
		Key: conformance.Key{
			ID: os.Getenv("ALIBABA_CLOUD_ACCESS_KEY_ID"), Secret: os.Getenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET"), Token: os.Getenv("ALIBABA_CLOUD_SECURITY_TOKEN"),
		},
	}
	if f.real {
		if o.Key.ID == "" || o.Key.Secret == "" {
			return o, errors.New("--real needs ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET")
		}
		pace, err := conformance.AccountPace()
		o.Pace = pace
		return o, err
	}
	u, err := url.Parse(f.endpoint)
	if err != nil || u.Host == "" {
		return o, fmt.Errorf("--endpoint %q is not a URL such as http://127.0.0.1:18080", f.endpoint)
	}
	if o.Key.ID == "" {
		o.Key = conformance.Key{ID: "emulator", Secret: "emulator-secret"}
	}
	o.Endpoint, o.PlainHTTP, o.Poll = u.Host, u.Scheme == "http", settleTime
	o.Admin = o.AdminOver(nil)
	return o, nil
}

// report writes the recording and a summary. Facts that do not hold are an error.
func (f *conformanceFlags) report(d conformance.Document, out io.Writer) error {
	if f.out != "" {
		if err := d.Write(f.out); err != nil {
			return err
		}
	}
	findings := d.Findings()
	for _, x := range findings {
		fmt.Fprintln(out, "differs:", x)
	}
	skipped := 0
	for _, r := range d.Scenarios {
		if r.Skipped != "" {
			skipped++
		}
	}
	checked := d.Checked()
	states := map[facts.State]int{}
	for id := range checked {
		if fact, ok := facts.Get(id); ok {
			states[fact.Source.State]++
		}
	}
	fmt.Fprintf(out, "%d scenarios, %d skipped; %d facts checked", len(d.Scenarios)-skipped, skipped, len(checked))
	for _, state := range facts.States() {
		if states[state] > 0 {
			fmt.Fprintf(out, ", %d %s", states[state], state)
		}
	}
	fmt.Fprintln(out)
	if len(findings) > 0 {
		return fmt.Errorf("%d differences", len(findings))
	}
	return nil
}
