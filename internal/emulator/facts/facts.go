// Package facts holds what the emulator claims about the cloud, one fact each, with the page, the program or the measurement that it
// comes from, or that it is assumed. A fact can be flipped: the emulator then behaves otherwise, for tests of what depends on it.
//
// It knows neither HTTP nor resources. Package emulator recognizes refusals and answers by themselves; the actions ask [api.Call.Holds]
// about everything else.
package facts

import (
	"fmt"
	"slices"
	"strings"
)

// Fact is one claim that a client can see.
type Fact struct {
	// ID names the fact for good: "slb.RspoolVipExist", "slb.created-active", "slb.DescribeLoadBalancers.answer".
	ID string
	// Product is the product code, "common" for what all have, or "network" for what only traffic shows.
	Product string
	// Actions are those that show the fact; empty means many.
	Actions []string
	// Statement says how the cloud behaves.
	Statement string
	// Source is where this comes from.
	Source Source
	// Code and Status are those of a refusal; other facts have none.
	Code   string
	Status int
	// FlipCode and FlipStatus are what a flipped refusal answers instead; by default the code with "Other" behind it, and the same status.
	FlipCode   string
	FlipStatus int
	// Settings flips the fact where a switch of the emulator does: a body of PUT /_emulator/settings. By default, the switch is "flipped".
	Settings string
	// Setting names the setting of the emulator that has the value which the fact is about, such as a flag: there is nothing to flip.
	Setting string
	// Check says how a client can find out whether the fact holds.
	Check Check
	// Transient refusals end by themselves: a client repeats the call.
	Transient bool
}

// State is how much is known of a fact.
type State string

// States of facts, from the best known one.
const (
	// Measured facts were recorded on a real account.
	Measured State = "measured"
	// Documented facts stand on a page of the vendor.
	Documented State = "documented"
	// FromCode facts follow from a program that works with the cloud: the vendor's SDK, the official CCM, Terraform's provider.
	FromCode State = "from code"
	// Assumed facts have no source, or sources that disagree.
	Assumed State = "assumed"
)

// States lists them in order.
func States() []State { return []State{Measured, Documented, FromCode, Assumed} }

// Source is where a fact comes from.
type Source struct {
	State State
	// Where is a URL, a program, or, for a measurement, its date and region.
	Where string
}

// Check is how a client can find out whether a fact holds.
type Check string

// Ways to check a fact.
const (
	// Calls of the API show it.
	Calls Check = ""
	// Provoked refusals come when the cloud is busy, locked or throttled. The emulator answers them on request, the cloud does not.
	Provoked Check = "provoked"
	// Account facts need something that a test must not have or do: a second access key, a second VPC, or a used-up quota.
	Account Check = "account"
	// Clock facts need hours. The clock of the emulator can be set forward, that of the cloud cannot.
	Clock Check = "clock"
	// Traffic shows it: connections to listeners. The emulator of the tests carries them, in an account nothing would answer them.
	Traffic Check = "traffic"
	// Time shows it, or a region, rates or sizes that no account should be brought to for a test.
	Time Check = "time"
)

// Flippable reports whether a switch makes the emulator behave otherwise.
func (f *Fact) Flippable() bool { return f.Setting == "" }

// Switch is the body of PUT /_emulator/settings that flips the fact, or "" if nothing does.
func (f *Fact) Switch() string {
	switch {
	case !f.Flippable():
		return ""
	case f.Settings != "":
		return f.Settings
	}
	return fmt.Sprintf(`{"flipped":[%q]}`, f.ID)
}

// Flipped is the refusal of a flipped fact.
func (f *Fact) Flipped() (code string, status int) {
	code, status = f.FlipCode, f.FlipStatus
	if status == 0 {
		status = f.Status
	}
	if code == "" && f.FlipStatus != 0 {
		code = f.Code
	} else if code == "" {
		code = f.Code + "Other"
	}
	return code, status
}

// table and index hold all facts; they do not change after the package is initialized.
var (
	table = slices.Concat(common(), slb(), nlb(), vpc(), ecs(), sts(), quotas(), network())
	index = indexed(table)
)

type refusal struct {
	product, code string
	status        int
}

type facts struct {
	byID      map[string]*Fact
	refusals  map[refusal]*Fact
	transient map[string]bool
}

// indexed panics on an id or a refusal that stands twice: the tables of this package are wrong.
func indexed(all []Fact) facts {
	x := facts{map[string]*Fact{}, map[refusal]*Fact{}, map[string]bool{}}
	for i := range all {
		f := &all[i]
		if x.byID[f.ID] != nil {
			panic("facts: " + f.ID + " stands twice")
		}
		x.byID[f.ID] = f
		if f.Code != "" {
			x.refusals[refusal{f.Product, strings.ToLower(f.Code), f.Status}] = f
		}
		if f.Transient {
			x.transient[strings.ToLower(f.Code)] = true
		}
	}
	return x
}

// All returns every fact of the tables, by product. Facts about answers, which follow from the table of actions, are not among them.
func All() []Fact { return slices.Clone(table) }

// Get returns a fact by its id. Facts about answers have an id and no entry in the tables: for them, it makes one.
func Get(id string) (Fact, bool) {
	if f := index.byID[id]; f != nil {
		return *f, true
	}
	product, rest, _ := strings.Cut(id, ".")
	action, isAnswer := strings.CutSuffix(rest, ".answer")
	if !isAnswer || strings.Contains(action, ".") {
		return Fact{}, false
	}
	return Answer(product, action), true
}

// OfRefusal returns the fact about a refusal, or nil. NLB varies the case of its codes.
func OfRefusal(product, code string, status int) *Fact {
	code = strings.ToLower(code)
	if f := index.refusals[refusal{product, code, status}]; f != nil {
		return f
	}
	return index.refusals[refusal{"common", code, status}]
}

// Transient reports whether a refusal ends by itself.
func Transient(code string) bool { return index.transient[strings.ToLower(code)] }

// AnswerID is the id of the fact about what an action answers.
func AnswerID(product, action string) string { return product + "." + action + ".answer" }

// Answer is the fact about what an action answers.
func Answer(product, action string) Fact {
	return Fact{
		ID: AnswerID(product, action), Product: product, Actions: []string{action},
		Statement: "the answer has the fields that the SDK decodes",
		Source:    Source{FromCode, "github.com/aliyun/alibaba-cloud-sdk-go"},
	}
}

// Set is a set of facts.
type Set map[string]bool

// Known reports the first id that is no fact, or one that cannot be flipped.
func Known(ids []string) error {
	for _, id := range ids {
		f, ok := Get(id)
		if !ok {
			return fmt.Errorf("no fact has the id %q", id)
		}
		if !f.Flippable() {
			return fmt.Errorf("the fact %s cannot be flipped: change %s", id, f.Setting)
		}
	}
	return nil
}
