// Package conformance checks what the emulator claims about the cloud: small scenarios call the API with the vendor's SDK, each claim is a
// fact, and a document records what was asked and answered. The same scenarios run against an emulator and against a real account. A
// document of a real account is replayed on the emulator, and differences name the facts that do not hold.
//
// It does not use the client of this project, with which it would share mistakes.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
)

// Options say where to run, and what.
type Options struct {
	Environment Environment
	Key         Key
	// Endpoint is the host of all products; "" means the vendor's.
	Endpoint  string
	PlainHTTP bool
	// Transport carries the calls; nil means the default.
	Transport http.RoundTripper
	// Admin calls the emulator's own API. Nil on a real account, where scenarios that need it are skipped.
	Admin func(ctx context.Context, method, path, body string) ([]byte, error)
	// Products are the products to check; none means all.
	Products []string
	// Scenarios are the names of the scenarios to run; none means all.
	Scenarios []string
	// Pace keeps calls of an action apart; nil does not.
	Pace *Pacer
	// Count hears of every call before it is made.
	Count func(product, action string)
	// Poll is the time between two calls that wait for something; 0 means 2 s.
	Poll time.Duration
	// Log gets one line per scenario; nil logs nothing.
	Log io.Writer
	// Tag is the value of the tag of everything that the run makes.
	Tag string
	// Experiments also runs the scenarios about time and traffic, which wait for minutes. Only the emulators of Emulated have a network for
	// them.
	Experiments bool

	network *network
}

// TagKey is the tag of everything that a run makes.
const TagKey = "alicloud-emulator-conformance"

// Environment is what has to exist.
type Environment struct {
	Region, VPC, RouteTable string
	// Account is the number of the account; "" if it is not known.
	Account string
	// VSwitches and Zones are two in different zones.
	VSwitches, Zones [2]string
	// Instances run in the first vSwitch. Interface and Address are the first one's.
	Instances          [2]string
	Interface, Address string
	SecurityGroup      string
	Image              string
	InstanceType       string
	// Role is the ARN of a role that the key can assume; "" skips what needs it. Provider is one for tokens.
	Role, Provider string
	// Disabled and Restricted are keys for refusals, and OtherInstance an instance in another VPC; only the emulator of the tests has them. It
	// also has networks with IPv6, another VPC and a full vSwitch.
	Disabled, Restricted Key
	OtherInstance        string
}

// names are the values that a document must not have.
func (e Environment) names(run string) map[string]string {
	return map[string]string{
		"vpc": e.VPC, "table": e.RouteTable, "vswitch-a": e.VSwitches[0], "vswitch-b": e.VSwitches[1], "zone-a": e.Zones[0], "zone-b": e.Zones[1],
		"instance-a": e.Instances[0], "instance-b": e.Instances[1], "interface": e.Interface, "own-address": e.Address, "group": e.SecurityGroup,
		"image": e.Image, "type": e.InstanceType, "role": e.Role, "provider": e.Provider, "region": e.Region, "other-instance": e.OtherInstance,
		"account": e.Account, "run": run,
	}
}

// Scenario is a small story that checks facts.
type Scenario struct {
	Name, Product string
	// Fixture needs what only the emulator of the tests has.
	Fixture bool
	// Emulator needs the emulator's own API.
	Emulator bool
	// Experiment needs an emulator of this process, and time.
	Experiment bool
	run        func(*R)
}

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	return slices.Concat(commonScenarios(), slbScenarios(), slbMoreScenarios(), nlbScenarios(), nlbMoreScenarios(), vpcScenarios(),
		ecsScenarios(), accountScenarios(), provokedScenarios(),
		experimentScenarios(), clockScenarios())
}

func (o Options) skips(s Scenario) string {
	switch {
	case s.Experiment && (!o.Experiments || o.Admin == nil || o.network == nil):
		return "takes minutes, and backend servers that nobody else uses"
	case s.Emulator && o.Admin == nil:
		return "only the emulator does this on request"
	case s.Fixture && o.Environment.Disabled.ID == "":
		return "needs access keys or networks that an account should not have for a test"
	case len(o.Products) > 0 && !slices.Contains(o.Products, s.Product):
		return "product not asked for"
	}
	return ""
}

// Run runs the scenarios and removes what they made. A finding is no error.
func Run(ctx context.Context, o Options) (Document, error) {
	d := Document{Format: Format, Real: o.Admin == nil, Date: time.Now().UTC().Format(time.DateOnly), Region: o.Environment.Region}
	var failed []error
	for _, s := range Scenarios() {
		if len(o.Scenarios) > 0 && !slices.Contains(o.Scenarios, s.Name) {
			continue
		}
		if why := o.skips(s); why != "" {
			d.Scenarios = append(d.Scenarios, Recording{Name: s.Name, Skipped: why})
			continue
		}
		recording, err := o.record(ctx, s)
		d.Scenarios = append(d.Scenarios, recording)
		if err != nil {
			failed = append(failed, fmt.Errorf("scenario %s: %w", s.Name, err))
		}
		if err := ctx.Err(); err != nil {
			failed = append(failed, err)
			break
		}
		if o.Log != nil {
			fmt.Fprintf(o.Log, "%s: %d calls, %d findings\n", s.Name, len(recording.Exchanges), len(recording.Findings))
		}
	}
	return d, errors.Join(failed...)
}

// errStopped ends a scenario whose next steps make no sense after a finding.
var errStopped = errors.New("the scenario cannot go on")

// record runs one scenario. An error means that its calls got no answer, or that something could not be removed.
func (o Options) record(ctx context.Context, s Scenario) (recording Recording, err error) {
	caller, err := newCaller(o)
	if err != nil {
		return Recording{Name: s.Name}, err
	}
	r := &R{ctx: ctx, options: o, env: o.Environment, caller: caller, names: newNames(o.Environment.names(o.Tag)),
		recording: Recording{Name: s.Name}}
	defer func() {
		stopped := recover()
		if stopped != nil && stopped != errStopped { //nolint:errorlint // the value that R panics with
			if r.failed == nil {
				panic(stopped)
			}
		}
		recording, err = r.recording, errors.Join(r.failed, r.clean())
	}()
	s.run(r)
	return recording, err
}

// P are parameters.
type P map[string]string

// R is a scenario that runs.
type R struct {
	ctx       context.Context //nolint:containedctx // lives as long as one scenario
	options   Options
	env       Environment
	caller    *caller
	names     *names
	recording Recording
	made      []resource
	restore   []func() error
	failed    error
}

// check is what a scenario expects of one call.
type check func(*step)

type step struct {
	exchange Exchange
	variant  Variant
	refused  []*facts.Fact
	want     []wanted
	// once: a refusal that ends by itself is the answer.
	once bool
}

type wanted struct {
	fact, path string
	value      any
	until      bool
}

// shows expects a value at a path of the answer, because of a fact.
func shows(fact, path string, value any) check {
	return func(s *step) { s.want = append(s.want, wanted{fact, path, value, false}) }
}

// until repeats the call until a value is at a path of the answer. Its fact may be "".
func until(fact, path string, value any) check {
	return func(s *step) { s.want = append(s.want, wanted{fact, path, value, true}) }
}

// refused expects the refusal of a fact.
func refused(fact string) check {
	f, ok := facts.Get(fact)
	if !ok || f.Code == "" {
		panic("conformance: " + fact + " is no refusal")
	}
	return func(s *step) {
		s.refused = append(s.refused, &f)
		s.exchange.Facts = append(s.exchange.Facts, fact)
	}
}

// fits makes the success of the call, or the refusal that it has, a matter of a fact.
func fits(fact string) check {
	return func(s *step) { s.exchange.Facts = append(s.exchange.Facts, fact) }
}

// once takes the first answer, also a refusal that ends by itself.
func once(s *step) { s.once = true }

// by makes a request that the SDK does not make.
func by(variant Variant) check { return func(s *step) { s.variant = variant } }

// tries is how often a call is repeated that waits for something.
const tries = 60

// do makes a call, compares its answer with what is expected, and records both. Without an answer, the scenario ends.
func (r *R) do(product, action string, p P, checks ...check) map[string]any {
	s := &step{exchange: Exchange{Product: product, Action: action}}
	for _, c := range checks {
		c(s)
	}
	s.exchange.Variant = s.variant
	parameters := r.tagged(product, action, p)
	a := r.settled(s, parameters)
	r.remember(product, action, a)
	r.judge(s, a)
	s.exchange.Parameters = map[string]string{}
	for name, value := range parameters {
		s.exchange.Parameters[name] = r.names.parameter(name, value)
	}
	if a.body != nil {
		s.exchange.Body = r.names.body("", a.body)
	}
	r.observe(s, a)
	r.recording.Exchanges = append(r.recording.Exchanges, s.exchange)
	if a.status/100 != 2 && len(s.refused) == 0 {
		panic(errStopped)
	}
	return a.body
}

// settled makes a call until its answer does not depend on something that ends by itself.
func (r *R) settled(s *step, parameters map[string]string) answer {
	for try := 1; ; try++ {
		a, err := r.caller.call(r.ctx, s.exchange.Product, s.exchange.Action, s.variant, parameters)
		if err != nil {
			r.fail(err)
		}
		if try == tries || !s.waits(a) {
			return a
		}
		r.wait()
	}
}

// waits reports whether the call has to be repeated.
func (s *step) waits(a answer) bool {
	if a.status/100 != 2 {
		return !s.once && facts.Transient(a.code) && !slices.ContainsFunc(s.refused, func(f *facts.Fact) bool { return f.Code == a.code })
	}
	if len(s.refused) > 0 {
		return false
	}
	return slices.ContainsFunc(s.want, func(w wanted) bool { return w.until && !equal(at(a.body, w.path), w.value) })
}

// judge notes what is not as expected.
func (r *R) judge(s *step, a answer) {
	x := &s.exchange
	x.Status, x.Code = a.status, a.code
	call := x.Product + " " + x.Action
	for _, f := range s.refused {
		if a.code != f.Code || a.status != f.Status {
			r.find(Finding{f.ID, call, fmt.Sprintf("%d %s", f.Status, f.Code), fmt.Sprintf("%d %s", a.status, a.code)})
		}
	}
	for _, w := range s.want {
		if w.fact != "" {
			x.Facts = append(x.Facts, w.fact)
		}
	}
	switch {
	case a.status/100 == 2 && (s.variant == "" || s.variant == Unsigned):
		x.Facts = append(x.Facts, facts.AnswerID(x.Product, x.Action))
	case a.status/100 != 2 && len(s.refused) == 0:
		r.find(Finding{first(x.Facts, facts.AnswerID(x.Product, x.Action)), call, "success", fmt.Sprintf("%d %s", a.status, a.code)})
	}
}

func first(all []string, otherwise string) string {
	if len(all) > 0 {
		return all[0]
	}
	return otherwise
}

// observe records the values that facts depend on.
func (r *R) observe(s *step, a answer) {
	x := &s.exchange
	for _, w := range s.want {
		if a.body == nil {
			continue
		}
		if got := at(a.body, w.path); !equal(got, w.value) {
			named := func(v any) any { return r.names.body(last(w.path), plain(v)) }
			r.find(Finding{first([]string{w.fact}, ""), x.Product + " " + x.Action, fmt.Sprintf("%s = %v", w.path, named(w.value)),
				fmt.Sprint(named(got))})
		}
		if w.until {
			x.Until = with(x.Until, w.path, r.names.body(last(w.path), plain(w.value)))
		}
		x.Observed = with(x.Observed, w.path, r.names.body(last(w.path), at(a.body, w.path)))
	}
}

func with(m map[string]any, key string, value any) map[string]any {
	if m == nil {
		m = map[string]any{}
	}
	m[key] = value
	return m
}

func (r *R) find(f Finding) { r.recording.Findings = append(r.recording.Findings, f) }

func (r *R) fail(err error) {
	r.failed = err
	panic(errStopped)
}

func (r *R) wait() {
	if err := r.options.wait(r.ctx); err != nil {
		r.fail(err)
	}
}

// wait waits for the next poll.
func (o Options) wait(ctx context.Context) error {
	d := o.Poll
	if d == 0 {
		d = 2 * time.Second
	}
	return sleep.For(ctx, d)
}
