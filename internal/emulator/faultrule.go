package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/faults"
)

// faultRule is a fault on the wire of the admin API.
type faultRule struct {
	Product string      `json:"product,omitempty"`
	Action  string      `json:"action"`
	Kind    api.Kind    `json:"kind,omitempty"`
	Code    string      `json:"code,omitempty"`
	Status  int         `json:"status,omitempty"`
	After   int         `json:"after,omitempty"`
	Times   *int        `json:"times,omitempty"`
	Latency string      `json:"latency,omitempty"`
	Drop    faults.Drop `json:"drop,omitempty"`
	// What follows goes beyond the contract: partial failures, reads that lag, answers that are cut off, and chance.
	FailItems    int          `json:"failItems,omitempty"`
	Stale        string       `json:"stale,omitempty"`
	ReplicaLag   string       `json:"replicaLag,omitempty"`
	TagSearchLag string       `json:"tagSearchLag,omitempty"`
	Body         *string      `json:"body,omitempty"`
	Job          api.JobFault `json:"job,omitempty"`
	Probability  float64      `json:"probability,omitempty"`
	Seed         uint64       `json:"seed,omitempty"`
	Matched      int          `json:"matched"`
	Hit          int          `json:"hit"`
}

// Statuses of final answers.
const minStatus, maxStatus = 200, 599

// rule reads a fault and reports everything that is wrong with it. Without times a rule hits one call, with 0 every one
// until it is deleted; the status is 400 by default.
func (f faultRule) rule() (faults.Rule, error) {
	r := faults.Rule{
		Product: f.Product, Action: f.Action, Kind: f.Kind, Code: f.Code, Status: cmp.Or(f.Status, http.StatusBadRequest), After: f.After,
		Times: 1,
		Drop:  f.Drop, FailItems: f.FailItems, Body: f.Body, Job: f.Job, Probability: f.Probability, Seed: f.Seed,
	}
	if f.Times != nil {
		r.Times = *f.Times
	}
	return r, errors.Join(
		readDuration("latency", f.Latency, &r.Latency), readDuration("stale", f.Stale, &r.Stale),
		readDuration("replicaLag", f.ReplicaLag, &r.ReplicaLag), readDuration("tagSearchLag", f.TagSearchLag, &r.TagSearchLag),
		oneOf("kind", f.Kind, "", api.Read, api.Write), oneOf("drop", f.Drop, "", faults.DropBefore, faults.DropAfter),
		oneOf("job", f.Job, "", api.JobFails, api.JobHangs),
		require(f.Action != "", "action: required, a name or *"),
		// With a status below 200, the server would answer twice: the second time with a success.
		require(r.Status >= minStatus && r.Status <= maxStatus, fmt.Sprintf("status: %d, accepted: %d to %d", r.Status, minStatus, maxStatus)),
		require(f.After >= 0 && r.Times >= 0 && f.FailItems >= 0,
			fmt.Sprintf("after: %d, times: %d, failItems: %d, accepted: numbers from 0", f.After, r.Times, f.FailItems)),
		require(f.Probability >= 0 && f.Probability <= 1, fmt.Sprintf("probability: %v, accepted: 0 to 1", f.Probability)),
	)
}

func readDuration(name, text string, to *time.Duration) error {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*to = d
	return require(d >= 0, name+": cannot be negative")
}

func oneOf[T ~string](name string, got T, known ...T) error {
	if slices.Contains(known, got) {
		return nil
	}
	return fmt.Errorf("%s %q: known are %v", name, got, known[1:])
}

func require(ok bool, message string) error {
	if ok {
		return nil
	}
	return errors.New(message)
}

func (e *Emulator) postFault(w http.ResponseWriter, r *http.Request) {
	var f faultRule
	if err := decode(r, &f); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	rule, err := f.rule()
	if err = errors.Join(err, e.matchable(rule)); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	e.faults.Add(rule)
	w.WriteHeader(http.StatusNoContent)
}

// matchable refuses a rule that would never hit: whoever misspells an action would search the fault in the program under test.
func (e *Emulator) matchable(r faults.Rule) error {
	var of []string
	for _, p := range e.table.Products() {
		if r.Product == "" || r.Product == p.Name {
			of = append(of, p.Name)
		}
	}
	if len(of) == 0 {
		return fmt.Errorf("product %q: no such product", r.Product)
	}
	if r.Action == "" || r.Action == "*" || slices.ContainsFunc(of, func(product string) bool {
		return e.table.Find(product, r.Action) != nil
	}) {
		return nil
	}
	return fmt.Errorf("action %q: not an action of %s; accepted: * or the name of one", r.Action, strings.Join(of, ", "))
}

func (e *Emulator) getFaults(w http.ResponseWriter, _ *http.Request) {
	rules := []faultRule{}
	for _, s := range e.faults.List() {
		rules = append(rules, faultRule{
			Product: s.Product, Action: s.Action, Kind: s.Kind, Code: s.Code, Status: s.Status, After: s.After, Times: &s.Times,
			Latency: s.Latency.String(), Drop: s.Drop, FailItems: s.FailItems, Stale: s.Stale.String(), ReplicaLag: s.ReplicaLag.String(),
			TagSearchLag: s.TagSearchLag.String(), Body: s.Body, Job: s.Job, Probability: s.Probability, Seed: s.Seed, Matched: s.Matched,
			Hit: s.Hit,
		})
	}
	reply(w, http.StatusOK, map[string]any{"faults": rules})
}

func (e *Emulator) deleteFaults(w http.ResponseWriter, _ *http.Request) {
	e.faults.Clear()
	w.WriteHeader(http.StatusNoContent)
}
