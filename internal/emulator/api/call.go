package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// Call is one authenticated, validated request.
type Call struct {
	Action      *Action
	RequestID   string
	AccessKeyID string
	// Region is the caller's RegionId, or the configured one when the request has none.
	Region string
	// Now is the one moment at which the call happens: every status in one answer belongs to the same instant.
	Now time.Time
	// Host is the same moment by the clock of the host, by which whatever comes from outside of the cloud is dated.
	Host   time.Time
	Params Params
	// Denied is set for an action with DeniedIsEmpty whose caller lacks the permission.
	Denied bool
	// FailItems items of a batch are to fail with ItemCode ("" = the action's own), as a fault rule demands.
	FailItems int
	ItemCode  string
	// Stale hides from lists what was created less than this time ago, ReplicaLag also from whoever asks by id.
	Stale, ReplicaLag time.Duration
	// Job is how a fault rule ends the asynchronous part of the call.
	Job JobFault
	// TagSearchLag makes searches by tag see tags as they were this long ago.
	TagSearchLag time.Duration
	// Hidden says that the answer lacks something because of one of them.
	Hidden bool
	// Flipped are facts that do not hold in this call.
	Flipped facts.Set
	// Met are the facts that shaped the answer, as far as the action knows them.
	Met []string
}

// Holds notes that a fact shapes the answer, and reports whether it holds: a test may have flipped it. A fact with a switch of its own
// always holds here; the action reads the switch.
func (c *Call) Holds(fact string) bool {
	if !slices.Contains(c.Met, fact) {
		c.Met = append(c.Met, fact)
	}
	return !c.Flipped[fact]
}

// JobFault is what a fault does to the asynchronous part of a call.
type JobFault string

// Faults of jobs: one that fails has no effect, one that hangs neither ends nor lets its object go.
const (
	JobFails JobFault = "failed"
	JobHangs JobFault = "stuck"
)

// Sees reports whether a list shows an object that was created at a moment.
func (c *Call) Sees(created time.Time) bool {
	return c.shows(created, max(c.Stale, c.ReplicaLag))
}

// Finds reports whether the call finds an object by its id that was created at a moment.
func (c *Call) Finds(created time.Time) bool {
	return c.shows(created, c.ReplicaLag)
}

func (c *Call) shows(created time.Time, lag time.Duration) bool {
	shown := lag == 0 || !created.After(c.Now.Add(-lag))
	c.Hidden = c.Hidden || !shown
	return shown
}

// Params are flat parameters as they travel: Tag.1.Key=a, InstanceIds=["i-1"].
type Params map[string]string

// Has reports whether the parameter was sent with a value.
func (p Params) Has(name string) bool { return p[name] != "" }

// Str returns the value, or "".
func (p Params) Str(name string) string { return p[name] }

// Or returns the value, or the default when absent.
func (p Params) Or(name, def string) string { return cmp.Or(p[name], def) }

// Int returns a validated number, or def when absent.
func (p Params) Int(name string, def int) int {
	n, err := strconv.Atoi(p[name])
	if err != nil {
		return def
	}
	return n
}

// Bool returns a validated boolean, or def when absent.
func (p Params) Bool(name string, def bool) bool {
	b, err := strconv.ParseBool(p[name])
	if err != nil {
		return def
	}
	return b
}

// List returns Name.1, Name.2, ... in index order.
func (p Params) List(name string) []string {
	type item struct {
		index int
		value string
	}
	var items []item
	for key, value := range p {
		rest, ok := strings.CutPrefix(key, name+".")
		if !ok || value == "" {
			continue
		}
		if i, err := strconv.Atoi(rest); err == nil {
			items = append(items, item{i, value})
		}
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.index, b.index) })
	values := make([]string, 0, len(items))
	for _, it := range items {
		values = append(values, it.value)
	}
	return values
}

// Objects returns Name.1.*, Name.2.*, ... in index order, each as the parameters below its index.
func (p Params) Objects(name string) []Params {
	byIndex := map[int]Params{}
	for key, value := range p {
		rest, ok := strings.CutPrefix(key, name+".")
		if !ok {
			continue
		}
		index, field, ok := strings.Cut(rest, ".")
		if !ok {
			continue
		}
		i, err := strconv.Atoi(index)
		if err != nil {
			continue
		}
		if byIndex[i] == nil {
			byIndex[i] = Params{}
		}
		byIndex[i][field] = value
	}
	indexes := make([]int, 0, len(byIndex))
	for i := range byIndex {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	objects := make([]Params, 0, len(indexes))
	for _, i := range indexes {
		objects = append(objects, byIndex[i])
	}
	return objects
}

// Has reports whether the parameter was sent with a value.
func (c *Call) Has(name string) bool { return c.Params.Has(name) }

// Str returns the value, or "".
func (c *Call) Str(name string) string { return c.Params.Str(name) }

// Or returns the value, or the default when absent.
func (c *Call) Or(name, def string) string { return c.Params.Or(name, def) }

// Int returns a validated number, or def when absent.
func (c *Call) Int(name string, def int) int { return c.Params.Int(name, def) }

// Bool returns a validated boolean, or def when absent.
func (c *Call) Bool(name string, def bool) bool { return c.Params.Bool(name, def) }

// List returns Name.1, Name.2, ... in index order.
func (c *Call) List(name string) []string { return c.Params.List(name) }

// Objects returns Name.1.*, Name.2.*, ... in index order.
func (c *Call) Objects(name string) []Params { return c.Params.Objects(name) }
