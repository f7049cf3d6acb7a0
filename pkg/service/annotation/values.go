package annotation

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Values of annotations that count without further words.
const (
	// DefaultSpec is the specification of a pay-by-specification CLB where no annotation gives one.
	DefaultSpec    = "slb.s1.small"
	networkVPC     = "vpc"
	NetworkClassic = "classic"
)

// Kind is a form of annotation values.
type Kind string

// The kinds of [Value].
const (
	Enum     Kind = "enum"
	Integer  Kind = "integer"
	Duration Kind = "duration" // with units, as 90s or 1h30m, see DurationPattern
	Pattern  Kind = "pattern"
	List     Kind = "list" // comma-separated, each element matches Pattern
	IPv4     Kind = "ipv4"
	DNSName  Kind = "dns-name"
	Tags     Kind = "tags"     // key=value,key=value
	Selector Kind = "selector" // key=value,key=value over node labels
	Domains  Kind = "domains"  // domain:certificate,domain:certificate
)

// Value says which values an annotation accepts.
type Value struct {
	Kind Kind
	// Values are those of an [Enum]; FoldCase accepts them in any letter case.
	Values   []string
	FoldCase bool
	// Min and Max bound an [Integer], and a [Duration] in seconds, both included; Also is one further value; Unit is for readers.
	Min, Max int
	Also     string
	Unit     string
	// Pattern must match the whole value of a [Pattern] or every element of a [List], and Except, if not empty, must not; Sample is for
	// readers, and Rule says in words what a [Pattern] accepts.
	Pattern string
	Except  string
	Sample  string
	Rule    string
}

// Parse returns the value in its normal form, and whether it is accepted.
func (v Value) Parse(text string) (string, bool) {
	switch v.Kind {
	case Enum:
		return v.parseEnum(text)
	case List:
		return v.parseList(text)
	default:
		return text, v.isNormalForm(text)
	}
}

// isNormalForm checks the kinds whose values are in normal form as they are written.
func (v Value) isNormalForm(text string) bool {
	switch v.Kind {
	case Integer:
		return v.inRange(text) || v.Also != "" && text == v.Also
	case Duration:
		duration, err := time.ParseDuration(text)
		return err == nil && wholeMatch(DurationPattern, text) && duration >= v.seconds(v.Min) && duration <= v.seconds(v.Max)
	case Pattern:
		return wholeMatch(v.Pattern, text) && (v.Except == "" || !wholeMatch(v.Except, text))
	case IPv4:
		address, err := netip.ParseAddr(text)
		return err == nil && address.Is4()
	case DNSName:
		_, err := netip.ParseAddr(text)
		return err != nil && len(validation.IsDNS1123Subdomain(text)) == 0
	default:
		return text != "" && v.acceptsPairs(text)
	}
}

// acceptsPairs checks the kinds that are a list of pairs.
func (v Value) acceptsPairs(text string) bool {
	var err error
	switch v.Kind {
	case Tags:
		_, err = parseTags(text)
	case Domains:
		_, err = ParseExtensions(text)
	case Selector:
		_, err = labels.ConvertSelectorToLabelsMap(text)
	default:
		return false
	}
	return err == nil
}

func (Value) seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func (v Value) inRange(text string) bool {
	number, err := strconv.Atoi(text)
	return err == nil && number >= v.Min && number <= v.Max && strconv.Itoa(number) == text
}

func (v Value) parseEnum(text string) (string, bool) {
	for _, value := range v.Values {
		if value == text || v.FoldCase && strings.EqualFold(value, text) {
			return value, true
		}
	}
	return "", false
}

// maxList is how many bytes a list may have, of which a part stands in the status of the Service, too: an annotation may have 256 kB. Each
// of 250 ports can name a server group of its own.
const maxList = 8 << 10

// parseList trims the elements, so that "a, b" is the same as "a,b".
func (v Value) parseList(text string) (string, bool) {
	if len(text) > maxList {
		return "", false
	}
	elements := strings.Split(text, ",")
	for i, element := range elements {
		elements[i] = strings.TrimSpace(element)
		if !wholeMatch(v.Pattern, elements[i]) {
			return "", false
		}
	}
	if slices.Sort(elements); len(slices.Compact(slices.Clone(elements))) != len(elements) {
		return "", false
	}
	return strings.Join(elements, ","), true
}

// Accepts describes the accepted values for a person.
func (v Value) Accepts() string {
	switch v.Kind {
	case Enum:
		return strings.Join(v.Values, ", ")
	case Integer:
		text := fmt.Sprintf("%d to %d", v.Min, v.Max)
		if v.Unit != "" {
			text += " " + v.Unit
		}
		if v.Also != "" {
			text += " or " + v.Also
		}
		return text
	case Duration:
		return fmt.Sprintf("a duration from %ds to %dh, for example %s", v.Min, int(v.seconds(v.Max).Hours()), v.Sample)
	case List:
		return fmt.Sprintf("a comma-separated list without duplicates, for example %s", v.Sample)
	case IPv4:
		return "an IPv4 address"
	case DNSName:
		return "a DNS name in lower case, not an IP address"
	case Tags:
		return "key=value,key2=value2 with at most " + strconv.Itoa(MaxTags-OwnTags) +
			" keys; neither part may start with aliyun or acs: or contain http:// or https://"
	case Domains:
		return fmt.Sprintf("domain:certificate,domain2:certificate2 with at most %d domains, each exact or *.example.com", MaxExtensions)
	case Selector:
		return "label=value,label2=value2"
	default:
		return v.acceptsText()
	}
}

// acceptsText says for readers what a [Pattern] accepts.
func (v Value) acceptsText() string {
	switch {
	case v.Sample == "":
		return "any text"
	case v.Rule != "":
		return fmt.Sprintf("%s, for example %s", v.Rule, v.Sample)
	}
	return fmt.Sprintf("for example %s", v.Sample)
}

// patterns are the compiled patterns of the table.
var patterns = compilePatterns()

func compilePatterns() map[string]*regexp.Regexp {
	compiled := map[string]*regexp.Regexp{}
	for _, row := range slices.Concat(Table(), NLBTable()) {
		compiled[row.Value.Pattern] = regexp.MustCompile(`^(?:` + row.Value.Pattern + `)$`)
	}
	for _, pattern := range sharedPatterns {
		compiled[pattern] = regexp.MustCompile(`^(?:` + pattern + `)$`)
	}
	return compiled
}

// wholeMatch reports whether the whole text matches a pattern of the table.
func wholeMatch(pattern, text string) bool { return patterns[pattern].MatchString(text) }

// NotIn returns the elements of all that are not in some.
func NotIn(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}
