package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// Replay repeats the calls of one recorded scenario and returns how the answers differ: in code, status, fields, and in the values that
// facts depend on. Every difference names a fact.
func Replay(ctx context.Context, o Options, recorded Recording) ([]Finding, error) {
	c, err := newCaller(o)
	if err != nil {
		return nil, err
	}
	p := &replay{options: o, caller: c, values: bindings{}}
	maps.Copy(p.values, o.Environment.names(o.Tag))
	for i, x := range recorded.Exchanges {
		if err := p.exchange(ctx, x); err != nil {
			return p.findings, fmt.Errorf("replay %s, call %d: %w", recorded.Name, i+1, err)
		}
	}
	return p.findings, nil
}

type replay struct {
	options  Options
	caller   *caller
	values   bindings
	findings []Finding
}

func (p *replay) exchange(ctx context.Context, x Exchange) error {
	if x.Experiment != "" {
		findings, err := p.options.again(ctx, x)
		p.findings = append(p.findings, findings...)
		return err
	}
	if x.Admin != nil {
		_, err := p.options.Admin(ctx, x.Admin.Method, p.values.expand(x.Admin.Path), p.values.expand(x.Admin.Body))
		return err
	}
	parameters := map[string]string{}
	for name, value := range x.Parameters {
		parameters[name] = p.values.expand(value)
	}
	a, err := p.settled(ctx, x, parameters)
	if err != nil {
		return err
	}
	p.compare(x, a)
	p.values.learn(x.Body, any(a.body))
	return nil
}

// settled repeats the call while its answer depends on something that ends by itself, and the recorded one did not.
func (p *replay) settled(ctx context.Context, x Exchange, parameters map[string]string) (answer, error) {
	for try := 1; ; try++ {
		a, err := p.caller.call(ctx, x.Product, x.Action, x.Variant, parameters)
		if err != nil {
			return a, err
		}
		done := a.code == x.Code
		if a.status/100 == 2 {
			for path, value := range x.Until {
				done = done && equal(p.shown(at(a.body, path)), p.shown(value))
			}
		} else {
			done = done || !facts.Transient(a.code)
		}
		if done || try == tries {
			return a, nil
		}
		if err := p.options.wait(ctx); err != nil {
			return a, err
		}
	}
}

// shown is a value with the values of names in it.
func (p *replay) shown(v any) any {
	if s, ok := v.(string); ok {
		return p.values.expand(s)
	}
	return v
}

func (p *replay) compare(x Exchange, a answer) {
	call := x.Product + " " + x.Action
	if a.status != x.Status || a.code != x.Code {
		p.find(x, a, Finding{Call: call, Want: fmt.Sprintf("%d %s", x.Status, x.Code), Got: fmt.Sprintf("%d %s", a.status, a.code)})
		return
	}
	for _, path := range slices.Sorted(maps.Keys(x.Observed)) {
		want, got := p.shown(x.Observed[path]), at(a.body, path)
		if !p.same(want, got) {
			p.find(x, a, Finding{Call: call, Want: fmt.Sprintf("%s = %v", path, want), Got: fmt.Sprint(got)})
		}
	}
	for _, difference := range shapes("", x.Body, any(a.body)) {
		difference.Fact, difference.Call = facts.AnswerID(x.Product, x.Action), call
		p.findings = append(p.findings, difference)
	}
}

// same reports whether an answer has the recorded value. A name that has no value yet stands for one that no other name has.
func (p *replay) same(want, got any) bool {
	s, isText := want.(string)
	if !isText || !placeholder.MatchString(s) {
		return equal(want, got)
	}
	value, isText := got.(string)
	return isText && value != "" && (placeholder.FindString(s) != s || !slices.Contains(slices.Collect(maps.Values(p.values)), value))
}

// find notes a difference under every fact that it may come from.
func (p *replay) find(x Exchange, a answer, f Finding) {
	named := slices.Clone(x.Facts)
	for _, code := range []answer{{status: x.Status, code: x.Code}, a} {
		if fact := facts.OfRefusal(x.Product, code.code, code.status); fact != nil && !slices.Contains(named, fact.ID) {
			named = append(named, fact.ID)
		}
	}
	if len(named) == 0 {
		named = []string{facts.AnswerID(x.Product, x.Action)}
	}
	for _, id := range named {
		f.Fact = id
		p.findings = append(p.findings, f)
	}
}

// shapes compares the fields and types of two answers. Lists are compared by their first items.
func shapes(path string, recorded, got any) []Finding {
	switch r := recorded.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []Finding{{Want: path + " is an object", Got: fmt.Sprintf("%T", got)}}
		}
		return fields(path, r, g)
	case []any:
		g, ok := got.([]any)
		switch {
		case !ok:
			return []Finding{{Want: path + " is a list", Got: fmt.Sprintf("%T", got)}}
		case len(r) == 0 || len(g) == 0:
			return nil
		}
		return shapes(path+"[]", r[0], g[0])
	}
	if recorded != nil && got != nil && fmt.Sprintf("%T", recorded) != fmt.Sprintf("%T", got) {
		return []Finding{{Want: fmt.Sprintf("%s is %T", path, recorded), Got: fmt.Sprintf("%T", got)}}
	}
	return nil
}

func fields(path string, recorded, got map[string]any) []Finding {
	var all []Finding
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		value, ok := got[name]
		if !ok {
			all = append(all, Finding{Want: path + "." + name, Got: "no such field"})
			continue
		}
		all = append(all, shapes(path+"."+name, recorded[name], value)...)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := recorded[name]; !ok {
			all = append(all, Finding{Want: "no field " + path + "." + name, Got: name})
		}
	}
	return all
}
