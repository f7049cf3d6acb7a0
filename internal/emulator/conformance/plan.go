package conformance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// Plan is what a run on a real account will do.
type Plan struct {
	Scenarios int
	// Skipped are the scenarios that an account cannot show, by reason.
	Skipped map[string]int
	// Calls are the numbers of calls by product and action; each further poll is one more.
	Calls map[string]int
	// Made are the numbers of resources that cost money, by kind.
	Made map[string]int
	// Price is the most that they cost, in CNY.
	Price float64
	// Duration is the least time that the rates allow.
	Duration time.Duration
}

// prices are upper bounds in CNY of what one resource costs for one started hour. They are assumed: the vendor publishes prices by region
// and time, without an API that needs no account.
var prices = map[string]float64{
	"slb CreateLoadBalancer": 1, "nlb CreateLoadBalancer": 2, "ecs RunInstances": 1, "vpc AllocateEipAddress": 0.5,
}

// PriceOf returns the most that a call which makes something costs for each started hour, in CNY; false if it costs nothing.
func PriceOf(call string) (cny float64, costs bool) {
	cny, costs = prices[call]
	return cny, costs
}

// DryRun finds out what a run on an account does, by running it on an emulator in this process.
func DryRun(ctx context.Context, products []string) (Plan, error) {
	p := Plan{Skipped: map[string]int{}, Calls: map[string]int{}, Made: map[string]int{}}
	e, o, err := Emulated(0)
	if err != nil {
		return p, err
	}
	defer e.Close()
	p.count(&o, e)
	d, err := dryRun(ctx, o, products)
	if err != nil {
		return p, err
	}
	p.made("ecs RunInstances", len(o.Environment.Instances)) // by Setup
	for _, r := range d.Scenarios {
		if r.Skipped != "" {
			p.Skipped[r.Skipped]++
			continue
		}
		p.Scenarios++
		for _, x := range r.Exchanges {
			if x.Status == http.StatusOK {
				p.made(x.Product+" "+x.Action, 1)
			}
		}
	}
	return p, nil
}

// dryRun makes the calls of a run on an account, from the first read to the search for what is left.
func dryRun(ctx context.Context, o Options, products []string) (Document, error) {
	ready, err := Inspect(ctx, o)
	if err == nil {
		ready, err = Setup(ctx, ready)
	}
	if err != nil {
		return Document{}, err
	}
	ready.Admin, ready.Products, ready.Environment.Disabled, ready.Environment.Role, ready.Environment.Provider = nil, products, Key{}, "", ""
	d, err := Run(ctx, ready)
	if err != nil {
		return d, err
	}
	_, err = Clean(ctx, o)
	return d, err
}

// made adds to what costs money.
func (p *Plan) made(key string, n int) {
	if price, costs := prices[key]; costs {
		p.Made[key] += n
		p.Price += price * float64(n)
	}
}

// count has the calls of a run counted, and the time that they take at the pace of an account.
func (p *Plan) count(o *Options, e *emulator.Emulator) {
	pace, next := Slow(e.Actions()), map[string]time.Duration{}
	o.Count = func(product, action string) {
		key := product + " " + action
		p.Calls[key]++
		p.Duration = max(p.Duration, next[key])
		next[key] = p.Duration + pace(product, action)
	}
}

// Write writes the plan as text.
func (p Plan) Write(w io.Writer) error {
	total := 0
	for _, n := range p.Calls {
		total += n
	}
	fmt.Fprintf(w, "%d scenarios, %d calls and polls, at least %s at a tenth of the published rates\n", p.Scenarios, total,
		p.Duration.Round(time.Minute))
	for _, why := range slices.Sorted(maps.Keys(p.Skipped)) {
		fmt.Fprintf(w, "%d scenarios do not run: %s\n", p.Skipped[why], why)
	}
	fmt.Fprintln(w, "calls:")
	keys := slices.SortedFunc(maps.Keys(p.Calls), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Calls[b], p.Calls[a]), cmp.Compare(a, b))
	})
	for _, key := range keys {
		fmt.Fprintf(w, "  %4d %s\n", p.Calls[key], key)
	}
	fmt.Fprintln(w, "what costs money, at assumed upper bounds per started hour; look up the prices of your region:")
	for _, key := range slices.Sorted(maps.Keys(p.Made)) {
		fmt.Fprintf(w, "  %4d %s at %.2f CNY\n", p.Made[key], key, prices[key])
	}
	_, err := fmt.Fprintf(w, "together at most %.2f CNY\n", p.Price)
	return err
}
