package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
)

// experiment is about time or traffic, which single calls do not show. A recording has what it observed; a replay does it again as a whole.
type experiment struct {
	name, product string
	run           func(*lab)
}

// Observation is what an experiment has seen of a fact, without names and addresses of an account.
type Observation struct {
	Fact string `json:"fact"`
	Seen string `json:"seen"`
}

func experiments() []experiment {
	return slices.Concat(timeExperiments(), clbExperiments(), nlbExperiments())
}

// experimentScenarios are scenarios of one experiment each.
func experimentScenarios() []Scenario {
	var all []Scenario
	for _, e := range experiments() {
		all = append(all, Scenario{Name: e.name, Product: e.product, Experiment: true, run: func(r *R) { r.conduct(e) }})
	}
	return all
}

// lab is where an experiment takes place: it makes calls, which no document has, and connections.
type lab struct {
	*R
	name         string
	network      *network
	observations []Observation
	// open are the connections of clients.
	open []net.Conn
}

// conduct carries out an experiment and records what it has seen.
func (r *R) conduct(e experiment) {
	seen, findings, err := r.options.conduct(r.ctx, e)
	if err != nil {
		r.fail(err)
	}
	x := Exchange{Experiment: e.name, Observations: seen}
	for _, o := range seen {
		if !slices.Contains(x.Facts, o.Fact) {
			x.Facts = append(x.Facts, o.Fact)
		}
	}
	r.recording.Exchanges = append(r.recording.Exchanges, x)
	r.recording.Findings = append(r.recording.Findings, findings...)
}

// conduct returns what an experiment has seen, and what is not as expected.
func (o Options) conduct(ctx context.Context, e experiment) ([]Observation, []Finding, error) {
	l := &lab{name: e.name, network: o.network}
	recording, err := o.record(ctx, Scenario{Name: e.name, Product: e.product, run: func(r *R) {
		l.R = r
		e.run(l)
	}})
	for _, c := range l.open {
		_ = c.Close()
	}
	l.network.stopServers()
	return l.observations, recording.Findings, err
}

// again carries out a recorded experiment and compares what it sees.
func (o Options) again(ctx context.Context, x Exchange) ([]Finding, error) {
	all := experiments()
	i := slices.IndexFunc(all, func(e experiment) bool { return e.name == x.Experiment })
	if i < 0 {
		return nil, fmt.Errorf("there is no experiment %q", x.Experiment)
	}
	seen, _, err := o.conduct(ctx, all[i])
	if err != nil {
		return nil, err
	}
	want, got := byFact(x.Observations), byFact(seen)
	var findings []Finding
	for _, o := range slices.Concat(x.Observations, seen) {
		isNew := !slices.ContainsFunc(findings, func(f Finding) bool { return f.Fact == o.Fact })
		if isNew && want[o.Fact] != got[o.Fact] {
			findings = append(findings, Finding{o.Fact, x.Experiment, want[o.Fact], got[o.Fact]})
		}
	}
	return findings, nil
}

// byFact are observations as one text for each fact.
func byFact(all []Observation) map[string]string {
	texts := map[string]string{}
	for _, o := range all {
		texts[o.Fact] += o.Seen + "\n"
	}
	return texts
}

// see notes what was seen of a fact, and what should have been.
func (l *lab) see(fact, seen, want string) {
	if _, known := facts.Get(fact); !known {
		panic("conformance: no fact has the ID " + fact)
	}
	l.observations = append(l.observations, Observation{fact, seen})
	if seen != want {
		l.find(Finding{fact, l.name, want, seen})
	}
}

// try makes a call and returns "accepted", or the code of its refusal. One that ends by itself is waited for.
func (l *lab) try(product, action string, p P) string {
	parameters := l.tagged(product, action, p)
	a := l.settled(&step{exchange: Exchange{Product: product, Action: action}}, parameters)
	l.remember(product, action, a)
	if a.status/100 == 2 {
		return "accepted"
	}
	return a.code
}

// pause lets time pass.
func (l *lab) pause(d time.Duration) {
	if err := sleep.For(l.ctx, d); err != nil {
		l.fail(err)
	}
}

// elsewhere goes on in a region of another configuration, with the settings of this one, and comes back.
func (l *lab) elsewhere(config *cloud.Config, run func(*lab)) {
	settings, err := l.options.Admin(l.ctx, http.MethodGet, "/_emulator/settings", "")
	if err != nil {
		l.fail(err)
	}
	var own emulator.Settings
	if err = json.Unmarshal(settings, &own); err != nil {
		l.fail(fmt.Errorf("read the settings: %w", err))
	}
	config.Flipped = own.Flipped
	e, err := emulator.New(emulator.Options{Config: config})
	if err != nil {
		l.fail(fmt.Errorf("start another emulator: %w", err))
	}
	o := l.options
	o.Transport = inProcess{e.Handler()}
	o.Admin = o.AdminOver(o.Transport)
	there := &lab{name: l.name}
	_, err = o.record(l.ctx, Scenario{run: func(r *R) {
		there.R = r
		run(there)
		l.recording.Findings = append(l.recording.Findings, r.recording.Findings...)
	}})
	l.observations = append(l.observations, there.observations...)
	if err = errors.Join(err, e.Close()); err != nil {
		l.fail(err)
	}
}

// lines joins what was seen one after the other.
func lines(seen ...string) string { return strings.Join(seen, ", ") }
