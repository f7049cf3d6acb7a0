package slb

import (
	"maps"
	"slices"
	"strings"
)

// nothingApplied is the tag's value when no annotation with a code is applied: a tag's value is better not empty.
const nothingApplied = "-"

// history is what the annotations of earlier passes mean for this one.
type history struct {
	// params are those of the Service, and the values to go back to for annotations that were removed.
	params Params
	// codes are those of the annotations that this pass applies.
	codes string
	// tag is what the tag is to hold, empty to leave it as it is.
	tag string
}

// appliedHistory compares the annotations with those that were applied before. A CLB that was adopted has no such tag:
// it gets one with the first change after that, so that adoption itself reverts and writes nothing. A CLB that its user
// made never gets one: there the Service remembers, and only what it had set on listeners goes back.
//
// ranges says that the Service has an access control list, or is to have one: the tag tells where to look for it.
func appliedHistory(known *memory, params Params, ranges bool) history {
	h := history{params: params, codes: appliedCodes(params)}
	switch {
	case !ranges:
	case h.codes == nothingApplied:
		h.codes = codeSourceRanges
	default:
		h.codes += "." + codeSourceRanges
	}
	if params.invalid {
		return h
	}
	if known.actual == nil {
		h.tag = h.codes
		return h
	}
	if known.actual.Reused {
		if params.overridesListeners() {
			h.params = params.revert(known.written.Applied)
		}
		return h
	}
	before, tagged := known.actual.LoadBalancer.Tag(tagApplied)
	if !tagged {
		before = known.applied
	}
	if tagged || ranges || before != "" && before != h.codes {
		h.tag = h.codes
	}
	h.params = params.revert(strings.Split(before, "."))
	return h
}

// appliedCodes returns the codes of the annotations that are present, in the order of the table.
func appliedCodes(params Params) string {
	var codes []string
	for _, row := range Annotations() {
		if row.Code != "" && params.Has(row.Suffix) && !params.reverted[row.Suffix] {
			codes = append(codes, row.Code)
		}
	}
	if len(codes) == 0 {
		return nothingApplied
	}
	return strings.Join(codes, ".")
}

// revert adds, for the annotations that were applied and are absent now, the values to go back to.
func (p Params) revert(codes []string) Params {
	reverted := p
	reverted.values, reverted.reverted = maps.Clone(p.values), map[Suffix]bool{}
	for _, row := range Annotations() {
		if row.Code == "" || p.Has(row.Suffix) || !slices.Contains(codes, row.Code) {
			continue
		}
		value := row.Revert
		if value == "" {
			value = row.Default
		}
		reverted.values[row.Suffix], reverted.reverted[row.Suffix] = value, true
	}
	return reverted
}
