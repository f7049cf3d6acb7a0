package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
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
	set.StringVar(&f.tag, "tag", "",
		"value of the tag of everything that the run makes (default: random); clean removes what has it, by default of all runs")
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

// check refuses what cannot be meant, before anything is called or printed.
func (f *conformanceFlags) check(given func(string) bool) error {
	err := f.checkMode(given)
	if err == nil {
		err = f.checkValues()
	}
	if err == nil && f.calls() {
		err = f.checkNetwork(given)
	}
	if err != nil {
		return err
	}
	if f.tag == "" && !f.clean {
		f.tag = strings.ToLower(rand.Text()[:8])
	}
	return nil
}

// calls reports whether scenarios run on an account.
func (f *conformanceFlags) calls() bool { return f.real && f.yes && !f.clean }

// checkMode refuses flags that do not go together: somebody who sets a flag that has no effect takes the run for another one.
func (f *conformanceFlags) checkMode(given func(string) bool) error {
	switch {
	case f.real && f.endpoint != "":
		return fmt.Errorf("--real and --endpoint %s exclude each other", f.endpoint)
	case f.clean && !f.real && f.endpoint == "":
		return errors.New("clean needs --real or --endpoint")
	case f.clean && f.out != "":
		return fmt.Errorf("--out %s: clean writes no recording", f.out)
	}
	for _, flag := range []string{"yes", "budget"} {
		if given(flag) && !f.real {
			return fmt.Errorf("--%s needs --real", flag)
		}
	}
	return nil
}

var (
	regions = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`)
	// tags are also part of names and of client tokens, which have at most 64 characters.
	tags  = regexp.MustCompile(`^[a-z0-9-]{5,32}$`)
	roles = regexp.MustCompile(`^acs:ram::\d+:role/[\w.-]+$`)
)

func (f *conformanceFlags) checkValues() error {
	known := []string{"slb", "nlb", "vpc", "ecs", "sts", "quotas"}
	for _, p := range f.products {
		if !slices.Contains(known, p) {
			return fmt.Errorf("--products %s: known are %s", p, strings.Join(known, ", "))
		}
	}
	switch {
	case !(f.budget >= 0): // also what is no number
		return fmt.Errorf("--budget %v is not an amount in CNY from 0", f.budget)
	case !regions.MatchString(f.region): // it becomes part of host names
		return fmt.Errorf("--region %q is not the ID of a region such as cn-hangzhou", f.region)
	case f.role != "" && !roles.MatchString(f.role):
		return fmt.Errorf("--role %q is not the ARN of a role such as acs:ram::1234567890123456:role/name", f.role)
	case f.tag != "" && !tags.MatchString(f.tag):
		return fmt.Errorf("--tag %q does not have 5 to 32 characters a-z, 0-9 and -", f.tag)
	case len(f.vSwitches) != 2 || f.vSwitches[0] == f.vSwitches[1] || slices.Contains(f.vSwitches, ""):
		return fmt.Errorf("--vswitches %s: needs two different IDs", strings.Join(f.vSwitches, ","))
	}
	return nil
}

// checkNetwork refuses a run on an account that names no network: the default ones are those of the emulator.
func (f *conformanceFlags) checkNetwork(given func(string) bool) error {
	for _, flag := range []string{"vpc", "vswitches"} {
		if !given(flag) {
			return fmt.Errorf("--real --yes needs --%s of a VPC that was made for the run", flag)
		}
	}
	if f.vpc == "" {
		return errors.New(`--vpc "" is not the ID of a VPC`)
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
	o, err := f.options(out)
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
	if f.clean {
		removed, err := conformance.Clean(ctx, o)
		for _, r := range removed {
			fmt.Fprintln(out, "removed", r)
		}
		return err
	}
	return f.record(ctx, o, out)
}

// settleTime is how long changes take in the emulator of this process.
const settleTime = 20 * time.Millisecond

func (f *conformanceFlags) inProcess(ctx context.Context, out io.Writer) error {
	if err := f.openOut(); err != nil {
		return err
	}
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
	if err := f.openOut(); err != nil {
		return err
	}
	found, err := conformance.Inspect(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "everything that is created has the tag %s=%s\n", conformance.TagKey, f.tag)
	ready, err := conformance.Setup(ctx, found)
	if err == nil {
		var d conformance.Document
		d, err = conformance.Run(ctx, ready)
		err = errors.Join(err, f.report(d, out))
	}
	_, left := conformance.Clean(context.WithoutCancel(ctx), o)
	return errors.Join(err, left)
}

// openOut finds out before a run, which takes long and costs money, whether its recording can be written.
func (f *conformanceFlags) openOut() error {
	if f.out == "" {
		return nil
	}
	file, err := os.OpenFile(f.out, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("--out %s: %w", f.out, err)
	}
	return file.Close()
}

// options are those for an account or an emulator elsewhere.
func (f *conformanceFlags) options(out io.Writer) (conformance.Options, error) {
	o := conformance.Options{
		Products: f.products, Log: out, Tag: f.tag,
		Environment: conformance.Environment{
			Region: f.region, VPC: f.vpc, VSwitches: [2]string(f.vSwitches), Image: f.image, InstanceType: f.instanceType, Role: f.role,
		},
		Key: conformance.Key{
			ID: os.Getenv("ALIBABA_CLOUD_ACCESS_KEY_ID"), Secret: os.Getenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET"),
			Token: os.Getenv("ALIBABA_CLOUD_SECURITY_TOKEN"),
		},
	}
	if f.real {
		if (f.calls() || f.clean) && (o.Key.ID == "" || o.Key.Secret == "") {
			return o, errors.New("--real needs ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET")
		}
		pace, err := conformance.AccountPace()
		o.Pace = pace
		return o, err
	}
	if f.endpoint == "" {
		return o, nil
	}
	err := f.at(&o)
	return o, err
}

// at completes the options with an emulator elsewhere.
func (f *conformanceFlags) at(o *conformance.Options) error {
	u, err := url.Parse(f.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("--endpoint %q is not a URL such as http://127.0.0.1:18080", f.endpoint)
	}
	if o.Key.ID == "" {
		o.Key = conformance.Key{ID: "emulator", Secret: "emulator-secret"}
	}
	o.Endpoint, o.PlainHTTP, o.Poll = u.Host, u.Scheme == "http", settleTime
	o.Admin = o.AdminOver(nil)
	return nil
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
