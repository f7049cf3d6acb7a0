package annotation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Params are the valid annotations of one Service in their normal form.
type Params struct {
	values map[Suffix]string
	// BackendType is "ecs", "eni" or "" for the configured default.
	BackendType string
	// SessionAffinity says that [PersistenceTimeout] stands for the field of the Service.
	SessionAffinity bool
	// Reverted are annotations that were removed and stand in values with the value to go back to.
	Reverted map[Suffix]bool
	// Invalid says that at least one annotation was not accepted.
	Invalid bool
	// refused are the annotations that were not accepted. They have no value here.
	refused map[Suffix]bool
	// family is that of the product, nil for a CLB.
	family *family
}

// Parse reads the annotations of a Service. What is not accepted is left out and reported, all of it at once.
func Parse(annotations map[string]string) (Params, []problem.Problem) {
	return clbFamily.parseAnnotations(annotations)
}

func (f *family) parseAnnotations(annotations map[string]string) (Params, []problem.Problem) {
	params := Params{values: map[Suffix]string{}, refused: map[Suffix]bool{}, family: f}
	var problems []problem.Problem
	for _, row := range f.rows {
		if found, ok := params.readRow(annotations, row); !ok {
			problems = append(problems, found)
			params.refuseSuffixes(row.Suffix)
		}
		problems = append(problems, prefixDisagreement(annotations, row.Suffix)...)
	}
	var ok bool
	if params.BackendType, ok = BackendTypeOf(annotations); !ok {
		problems = append(problems, f.invalidValue(BackendType, annotations[BackendType], "ecs, eni"))
		params.refuseSuffixes(BackendType)
	}
	problems = append(problems, params.crossCheck()...)
	return params, append(problems, f.unknownKeys(annotations)...)
}

// BackendTypeOf returns the value of [BackendType], "" for the configured default, and false for one that is not accepted.
func BackendTypeOf(annotations map[string]string) (kind string, ok bool) {
	switch kind = strings.TrimSpace(annotations[BackendType]); kind {
	case "", alicloud.BackendECS, alicloud.BackendENI:
		return kind, true
	}
	return "", false
}

// refuseSuffixes notes that annotations were not accepted.
func (p *Params) refuseSuffixes(suffixes ...Suffix) {
	for _, suffix := range suffixes {
		delete(p.values, suffix)
		p.refused[suffix], p.Invalid = true, true
	}
}

// Refusing returns the parameters with annotations that count as not accepted.
func (p Params) Refusing(suffixes ...Suffix) Params {
	refusing := p
	refusing.values, refusing.refused = maps.Clone(p.values), maps.Clone(p.refused)
	refusing.refuseSuffixes(suffixes...)
	return refusing
}

// Without returns the parameters as if annotations were absent, and had been before.
func (p Params) Without(suffixes ...Suffix) Params {
	p.values, p.Reverted = maps.Clone(p.values), maps.Clone(p.Reverted)
	for _, suffix := range suffixes {
		delete(p.values, suffix)
		delete(p.Reverted, suffix)
	}
	return p
}

// With returns the parameters as if an annotation had a value, in its normal form.
func (p Params) With(suffix Suffix, value string) Params {
	p.values, p.Reverted = maps.Clone(p.values), maps.Clone(p.Reverted)
	p.values[suffix] = value
	delete(p.Reverted, suffix)
	return p
}

// Fingerprint is the same text for parameters that say the same.
func (p Params) Fingerprint() string {
	return fmt.Sprint(p.values, p.refused, p.BackendType)
}

// Refused reports whether the annotation is present and was not accepted, so that nobody knows what the author of the Service wants.
func (p Params) Refused(suffix Suffix) bool { return p.refused[suffix] }

// Refuses reports whether an annotation that was not accepted stops the scope.
func (p Params) Refuses(scope Scope) bool {
	return slices.ContainsFunc(p.familyOf().rows, func(row Row) bool { return row.Scope == scope && p.refused[row.Suffix] })
}

// RefusesListener reports whether an annotation that was not accepted decides on listeners of the protocol.
func (p Params) RefusesListener(protocol string) bool {
	return slices.ContainsFunc(p.familyOf().listeners, func(row Row) bool {
		return p.refused[row.Suffix] && slices.Contains(row.Protocols, protocol)
	})
}

// WithLast returns the parameters with the last accepted values in the place of those that were not accepted. What was not
// accepted before either stays refused. A nil last changes nothing.
func (p Params) WithLast(last *Params) Params {
	if last == nil || !p.Invalid {
		return p
	}
	filled := p
	filled.values, filled.refused = maps.Clone(p.values), maps.Clone(p.refused)
	for suffix := range p.refused {
		value, had := last.values[suffix]
		if last.refused[suffix] || !had && (suffix == SecurityGroupIDs || slices.Contains(accessLists, suffix)) {
			continue // without an access list before, "as it was" could open a listener to everybody
		}
		delete(filled.refused, suffix)
		if had {
			filled.values[suffix] = value
		}
		if suffix == BackendType {
			filled.BackendType = last.BackendType
		}
	}
	filled.Invalid = len(filled.refused) > 0
	return filled
}

// readRow takes one annotation; ok is false when its value is not accepted.
func (p *Params) readRow(annotations map[string]string, row Row) (problem.Problem, bool) {
	text, ok := Lookup(annotations, row.Suffix)
	if !ok {
		return problem.Problem{}, true
	}
	value, ok := row.Value.Parse(strings.TrimSpace(text))
	if !ok {
		return p.familyOf().invalidValue(row.Suffix.Key(), text, row.Value.Accepts()), false
	}
	p.values[row.Suffix] = value
	return problem.Problem{}, true
}

func (f *family) invalidValue(key, text, accepted string) problem.Problem {
	hint := ""
	switch trimmed := strings.Trim(text, `"'`); {
	case len(text) > maxList:
		hint = fmt.Sprintf(" (it is too long: a list has at most %d kB)", maxList>>10)
	case len(trimmed) == len(text)-2:
		hint = " (remove the quotes inside the value)"
	case f == nlbFamily && key == CertID.Key() && strings.Contains(text, ","):
		hint = " (a listener has one certificate of its own; " + AdditionalCertIDs.Key() + " takes the others)"
	case f == clbFamily && (strings.HasPrefix(text, "nlb") || strings.HasPrefix(text, "tcpssl:")):
		hint = " (this value is for NLBs, and this Service has a CLB)"
	case f == nlbFamily && (strings.HasPrefix(text, "lb-") || strings.HasPrefix(text, "http")) && !strings.HasPrefix(text, "http_"):
		hint = " (this value is for CLBs, and this Service has an NLB)"
	}
	return problem.Newf(problem.ReasonInvalidAnnotation, "%s: %s is not accepted%s; accepted: %s", key, problem.Value(text), hint, accepted)
}

// prefixDisagreement reports two prefixes with different values.
func prefixDisagreement(annotations map[string]string, suffix Suffix) []problem.Problem {
	first, hasFirst := annotations[fullKey(0, suffix)]
	second, hasSecond := annotations[fullKey(1, suffix)]
	if !hasFirst || !hasSecond || first == second || strings.TrimSpace(first) == "" || strings.TrimSpace(second) == "" {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonAnnotationNoEffect, "%s%s: %s has no effect, because %s%s: %s takes precedence",
		Prefixes[1], string(suffix), problem.Value(second), Prefixes[0], string(suffix), problem.Value(first))}
}

// deadNames are keys that older documents show and that nothing ever read.
var deadNames = map[Suffix]Suffix{
	"slb-network-type":              NetworkType,
	"loadbalancer-slb-network-type": NetworkType,
	"loadbalancer-persistence-time": PersistenceTimeout,
}

// elsewhereOfCLB are the annotations that only an NLB has.
var elsewhereOfCLB = map[Suffix]Suffix{
	ZoneMaps: "", IPv6AddressType: "", SecurityGroupIDs: "", BandwidthPackageID: "", CrossZoneEnabled: "", ListenerPortRange: "",
	AdditionalCertIDs: "",
	CACertID:          "", CACert: "", ALPN: "", ALPNPolicy: "", Cps: "", PPV2EpID: "", PPV2EpsID: "", PPV2VPCID: "", ServerGroupType: "",
	PreserveClientIP: "", HealthCheckHTTPVersion: "",
}

// FamilyStart begins the suffixes of this family; other controllers share the prefixes (private zones, for example).
const FamilyStart = "loadbalancer-"

// maxUnknown is how many unknown keys are reported, maxCompared how many are compared with known ones: a Service may have thousands.
const (
	maxUnknown  = 20
	maxCompared = 100
)

func (f *family) unknownKeys(annotations map[string]string) []problem.Problem {
	var problems []problem.Problem
	var compared int
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if len(problems) == maxUnknown || compared == maxCompared {
			return append(problems, problem.Newf(problem.ReasonUnknownAnnotation, "the other annotations were not checked for unknown keys"))
		}
		prefix, suffix, ours := cutPrefix(strings.TrimSpace(key))
		switch {
		case !ours:
			meant, isCompared := f.meantKey(key)
			if isCompared {
				compared++
			}
			if meant != "" {
				problems = append(problems, problem.Newf(problem.ReasonUnknownAnnotation, "%q is unknown; did you mean %s?", key, meant))
			}
		case !f.known[suffix] || key != strings.TrimSpace(key):
			compared++
			problems = append(problems, f.unknownKey(key, prefix, suffix)...)
		}
	}
	return problems
}

// cutPrefix splits a key after one of the [Prefixes].
func cutPrefix(key string) (prefix string, suffix Suffix, ours bool) {
	for _, prefix := range Prefixes {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			return prefix, Suffix(rest), true
		}
	}
	return "", "", false
}

// unknownKey says what is wrong with a key with one of the [Prefixes]: nothing, if it may be one of another controller.
func (f *family) unknownKey(key, prefix string, suffix Suffix) []problem.Problem {
	if instead, ok := f.elsewhere[suffix]; ok {
		return []problem.Problem{f.noEffect(key, instead)}
	}
	if meant := f.nearestSuffix(suffix); meant != "" {
		return []problem.Problem{problem.Newf(problem.ReasonUnknownAnnotation, "%q is unknown; did you mean %s%s?", key, prefix, string(meant))}
	}
	if strings.HasPrefix(string(suffix), FamilyStart) {
		return []problem.Problem{problem.Newf(problem.ReasonUnknownAnnotation, "%q is unknown", key)}
	}
	return nil
}

// noEffect reports an annotation that only another product has.
func (f *family) noEffect(key string, instead Suffix) problem.Problem {
	switch {
	case f == clbFamily:
		return problem.Newf(problem.ReasonAnnotationNoEffect, "%s has no effect: only NLBs support it, and this Service has a CLB", key)
	case instead != "":
		return problem.Newf(problem.ReasonAnnotationNoEffect,
			"%s has no effect: only CLBs support it, and this Service has an NLB; use %s instead", key, instead)
	}
	return problem.Newf(problem.ReasonAnnotationNoEffect, "%s has no effect: only CLBs support it, and this Service has an NLB", key)
}

func (f *family) nearestSuffix(suffix Suffix) Suffix {
	if f.known[suffix] {
		return suffix
	}
	if meant, ok := deadNames[suffix]; ok {
		return meant
	}
	if meant := FamilyStart + suffix; f.known[meant] {
		return meant
	}
	for _, row := range f.rows {
		if Near(string(suffix), string(row.Suffix)) {
			return row.Suffix
		}
	}
	return ""
}

func abs(n int) int { return max(n, -n) }

// editDistance counts the insertions, deletions and replacements that turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Get returns the value of an annotation, or "" when it is absent.
func (p Params) Get(suffix Suffix) string { return p.values[suffix] }

// Has reports whether the annotation is present and accepted.
func (p Params) Has(suffix Suffix) bool {
	_, ok := p.values[suffix]
	return ok
}

// Int returns the value as a number, or fallback when the annotation is absent.
func (p Params) Int(suffix Suffix, fallback int) int {
	if number, err := strconv.Atoi(p.values[suffix]); err == nil {
		return number
	}
	return fallback
}

// Duration returns the value of a [Duration], or fallback when the annotation is absent.
func (p Params) Duration(suffix Suffix, fallback time.Duration) time.Duration {
	if duration, err := time.ParseDuration(p.values[suffix]); err == nil {
		return duration
	}
	return fallback
}

// Or returns the value, or fallback when the annotation is absent.
func (p Params) Or(suffix Suffix, fallback string) string {
	if value, ok := p.values[suffix]; ok {
		return value
	}
	return fallback
}

// AddressType is [alicloud.AddressInternet] or [alicloud.AddressIntranet].
func (p Params) AddressType() string { return p.Or(AddressType, alicloud.AddressInternet) }

// OverridesListeners reports whether the Service manages the listeners of an existing CLB.
func (p Params) OverridesListeners() bool { return p.Get(ForceOverrideListeners) == "true" }

// Preserves reports whether the user wants to keep the load balancer. Any value but "false" and "off" says so, as for the official CCM.
func (p Params) Preserves() bool {
	switch p.Get(PreserveOnDelete) {
	case "", "false", "off":
		return false
	}
	return true
}

// Revert adds, for the annotations that were applied and are absent now, the values to go back to.
func (p Params) Revert(applied []string) Params {
	reverted := p
	reverted.values, reverted.Reverted = maps.Clone(p.values), map[Suffix]bool{}
	for _, row := range p.familyOf().rows {
		if !row.Reverts || p.Has(row.Suffix) || p.refused[row.Suffix] || !slices.Contains(applied, string(row.Suffix)) {
			continue
		}
		value := row.Revert
		if value == "" {
			value = row.Default
		}
		reverted.values[row.Suffix], reverted.Reverted[row.Suffix] = value, true
	}
	return reverted
}

// Applied returns which of some annotations are applied, as far as their removal reverts something.
func (p Params) Applied(rows []Row) []string {
	var applied []string
	for _, row := range rows {
		if row.Reverts && p.Has(row.Suffix) && !p.Reverted[row.Suffix] {
			applied = append(applied, string(row.Suffix))
		}
	}
	return applied
}

// JoinsGroups reports whether the annotation weight counts on an existing load balancer: once a port joins a group of others, and then for
// all ports, as with the official CCM.
func (p Params) JoinsGroups() bool { return p.Has(VGroupPort) || p.Refused(VGroupPort) }
