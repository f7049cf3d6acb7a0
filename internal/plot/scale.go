package plot

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Services of the fleet that the charts of docs/explanation/scale.md show, and the quota of CLBs that a node can be behind.
const (
	FleetServices   = 2000
	FleetAttachment = 50
	writesPerMinute = 90
)

// MeasuredFile is the name of the file beside the charts with what they show of the bench: [Measured] by the names of scenarios.
const MeasuredFile = "scale-measured.json"

// Scenarios of the bench whose results the charts show.
const (
	ScenarioFleet  = "scale-fleet"
	ScenarioFew    = "scale-fleet-25"
	ScenarioNew    = "scale-new"
	ScenarioGroups = "scale-groups"
	ScenarioZone   = "scale-zone"
)

// Measured is what a scenario of the bench has measured, as far as charts show it.
type Measured struct {
	// Date is when.
	Date string `json:"date"`
	// Joined and Left are how many writes a node costs that joins or leaves a cluster of so many nodes.
	Nodes  int     `json:"nodes,omitempty"`
	Joined float64 `json:"writesWhenNodeJoins,omitempty"`
	Left   float64 `json:"writesWhenNodeLeaves,omitempty"`
	// Members are in how many vServer groups the nodes are, see [Distribution].
	Members []int `json:"membersPerNode,omitempty"`
	// Forced is how many seconds the rate limits force on a storm, Took how many it took.
	Forced float64 `json:"forcedSeconds,omitempty"`
	Took   float64 `json:"seconds,omitempty"`
}

// Events keeps how many writes a node costs that joins or leaves a cluster of so many nodes.
func (m *Measured) Events(nodes int, joined, left float64) {
	m.Nodes, m.Joined, m.Left = nodes, math.Round(joined*10)/10, math.Round(left*10)/10
}

// Storm keeps how long a storm took.
func (m *Measured) Storm(forced, took time.Duration) {
	m.Forced, m.Took = math.Round(forced.Seconds()), math.Round(took.Seconds())
}

// Subsets is what the code of the manager that chooses nodes computes. A test in pkg/service/backend writes it.
type Subsets struct {
	// Nodes are sizes of clusters with [FleetServices] Services of one port. Least and Most are the bounds of the mean number of writes per
	// node event with auto, Few is that number with 25 nodes per Service.
	Nodes []float64 `json:"nodes"`
	Least []float64 `json:"least"`
	Most  []float64 `json:"most"`
	Few   []float64 `json:"few"`
	// Members are in how many vServer groups the nodes of a fleet in the same proportion are, see [Distribution].
	Members []int `json:"members"`
}

// Storms are times in seconds of many writes with one action. X is the time that the rate limits force, Y the one that they took. A test in
// pkg/alicloud writes it.
type Storms struct {
	// Limiter is what the rate limiter of the manager makes of them, Virtual are storms of tests in virtual time.
	Limiter []Point `json:"limiter"`
	Virtual []Point `json:"virtual"`
}

//go:embed computed-subsets.json
var computedSubsets []byte

//go:embed computed-storms.json
var computedStorms []byte

// steps is in how many steps a distribution goes from the first to the last.
const steps = 20

// Distribution are the values of the first, the last, and those in between in steps of 5% of all, in ascending order.
func Distribution(values []int) []int {
	sorted := slices.Sorted(slices.Values(values))
	var found []int
	for i := range steps + 1 {
		if len(sorted) > 0 {
			found = append(found, sorted[int(math.Round(float64(i*(len(sorted)-1))/steps))])
		}
	}
	return found
}

// ScaleCharts draws the charts of docs/explanation/scale.md as SVG, by the names of their files. measured is by scenario. What scenarios
// have not measured is not in the charts, and lacking names these scenarios.
func ScaleCharts(measured map[string]Measured) (charts map[string]string, lacking []string, err error) {
	var subsets Subsets
	var storms Storms
	if err = json.Unmarshal(computedSubsets, &subsets); err == nil {
		err = json.Unmarshal(computedStorms, &storms)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("decode what is computed: %w", err)
	}
	for _, scenario := range []string{ScenarioFleet, ScenarioFew, ScenarioNew, ScenarioGroups, ScenarioZone} {
		if !measured[scenario].complete(scenario) {
			lacking = append(lacking, scenario)
		}
	}
	return map[string]string{
		"scale-members.svg": membersChart(subsets, measured).SVG(),
		"scale-writes.svg":  writesChart(subsets, measured).SVG(),
		"scale-storms.svg":  stormsChart(storms, measured).SVG(),
	}, lacking, nil
}

// complete reports whether a scenario has measured all that charts show of it.
func (m Measured) complete(scenario string) bool {
	storm, spread, events := m.Took > 0, len(m.Members) > 0, m.Joined > 0 && m.Left > 0
	return map[string]bool{
		ScenarioFleet: events && spread, ScenarioFew: events && spread, ScenarioNew: storm, ScenarioGroups: storm && spread,
		ScenarioZone: storm && spread,
	}[scenario]
}

func membersChart(computed Subsets, measured map[string]Measured) Chart {
	percent := func(members []int) (points []Point) {
		for i, n := range members {
			points = append(points, Point{X: float64(i) * 100 / steps, Y: float64(n)})
		}
		return points
	}
	lines := []Line{
		{Name: "quota of CLBs", Dashed: true, Points: percent(slices.Repeat([]int{FleetAttachment}, steps+1))},
		{Name: "computed, auto", Dashed: true, Points: percent(computed.Members)},
	}
	for _, one := range []struct{ scenario, name string }{
		{ScenarioFleet, "measured, auto"}, {ScenarioFew, "measured, 25 per Service"}, {ScenarioZone, "measured, after a zone died"},
		{ScenarioGroups, "measured, groups, 500 nodes"},
	} {
		if members := measured[one.scenario].Members; len(members) > 0 {
			lines = append(lines, Line{Name: one.name, Points: percent(members)})
		}
	}
	return Chart{
		Title: "Members per node: how many vServer groups each node is in", X: "% of the nodes, from the least to the most used one",
		Y: "vServer groups", Linear: true, XTicks: []float64{0, 20, 40, 60, 80, 100}, YTicks: []float64{0, 10, 20, 30, 40, 50, 60}, Lines: lines,
	}
}

func writesChart(computed Subsets, measured map[string]Measured) Chart {
	per := func(y func(i int) float64) (points []Point) {
		for i, nodes := range computed.Nodes {
			points = append(points, Point{X: nodes, Y: y(i)})
		}
		return points
	}
	values := func(of []float64) []Point { return per(func(i int) float64 { return of[i] }) }
	var points []Point
	for _, scenario := range []string{ScenarioFleet, ScenarioFew} {
		if m := measured[scenario]; m.Joined > 0 && m.Left > 0 {
			points = append(points, Point{float64(m.Nodes), m.Joined}, Point{float64(m.Nodes), m.Left})
		}
	}
	lines := []Line{
		{Name: "auto, at least", Points: values(computed.Least)},
		{Name: "auto, at most", Points: values(computed.Most)},
		{Name: "25 nodes per Service", Points: values(computed.Few)},
		{Name: "without subsets", Dashed: true, Points: per(func(int) float64 { return FleetServices })},
		{Name: "writes in a minute", Dashed: true, Points: per(func(int) float64 { return writesPerMinute })},
	}
	return Chart{
		Title: "Writes when a node joins or leaves: 2,000 Services of one port", X: "nodes in the cluster", Y: "writes", XTicks: computed.Nodes,
		YTicks: []float64{5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}, Lines: withPoints(lines, "measured by make bench", points),
	}
}

func stormsChart(computed Storms, measured map[string]Measured) Chart {
	ticks := []float64{50, 100, 200, 500, 1000, 2000}
	first, last := ticks[0], ticks[len(ticks)-1]
	times := func(factor float64) []Point { return []Point{{first, factor * first}, {last / factor, last}} }
	var points []Point
	for _, scenario := range slices.Sorted(maps.Keys(measured)) {
		if m := measured[scenario]; m.Took > 0 {
			points = append(points, Point{m.Forced, m.Took})
		}
	}
	lines := []Line{
		{Name: "the rate limiter, computed", Points: computed.Limiter},
		{Name: "tests in simulated time", Loose: true, Points: computed.Virtual},
		{Name: "forced by the rate limits", Dashed: true, Points: times(1)},
		{Name: "1.1 times as long", Dashed: true, Points: times(1.1)},
	}
	return Chart{
		Title: "Time of storms, and the time that the rate limits force", X: "seconds that the rate limits force", Y: "seconds", XTicks: ticks,
		YTicks: ticks,
		Lines:  withPoints(lines, "measured by make bench", points),
	}
}

// withPoints adds loose points, if there are any.
func withPoints(lines []Line, name string, points []Point) []Line {
	if len(points) == 0 {
		return lines
	}
	return append(lines, Line{Name: name, Loose: true, Points: points})
}
