package conformance

import (
	"fmt"
	"net/netip"
	"regexp"
	"sort"
	"strings"
)

// names puts names in the place of what belongs to one account or one moment: ids, addresses, times. The same value gets the same name
// within one scenario, so that a replay knows which answer a later parameter came from.
type names struct {
	byValue map[string]string
	counts  map[string]int
	// long are the values that are also replaced inside longer texts, the longest first.
	long []string
}

func newNames(known map[string]string) *names {
	n := &names{byValue: map[string]string{}, counts: map[string]int{}}
	for name, value := range known {
		if value != "" {
			n.add(value, name)
		}
	}
	return n
}

func (n *names) add(value, name string) {
	n.byValue[value] = name
	if len(value) < 5 {
		return
	}
	n.long = append(n.long, value)
	sort.SliceStable(n.long, func(i, j int) bool { return len(n.long[i]) > len(n.long[j]) })
}

// hidden are fields whose values never leave the program.
var hidden = map[string]bool{
	"AccessKeySecret": true, "SecurityToken": true, "PrivateKey": true, "OIDCToken": true, "UserData": true, "Fingerprint": true,
	"AccessKeyId": true,
}

// ofOneAnswer are fields whose values say nothing about another answer.
var ofOneAnswer = map[string]bool{
	"RequestId": true, "Message": true, "Recommend": true, "HostId": true, "MacAddress": true,
	// These are names that the owner of the account has chosen, or that say which machine it is.
	"HostName": true, "SerialNumber": true, "KeyPairName": true, "OwnerAccount": true, "VpcName": true, "VSwitchName": true,
}

// kept are fields that end like ids and are none.
var kept = map[string]bool{"RegionId": true, "ZoneId": true, "MasterZoneId": true, "SlaveZoneId": true, "SecurityPolicyId": true,
	"ServerRegionId": true, "NextHopRegionId": true}

const redacted = "***"

var (
	moments = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z$`)
	ids     = regexp.MustCompile(`(Id|Ids|IdSet|^NextToken)$`)
	digits  = regexp.MustCompile(`\b\d{12,20}\b`)
	arns    = regexp.MustCompile(`\b(acs:[^:\s]*:[^:\s]*:[^:\s]*:[a-z-]+/)\S+`)
	// Addresses inside of longer texts. A field with nothing but an address is named by answered.
	addresses = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b|\b[0-9a-f]{1,4}(:[0-9a-f]{0,4}){2,7}\b`)
)

// account is the least number that can be that of an account.
const account = 1e11

// body returns an answer with names in it, and learns the values of the answer.
func (n *names) body(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			out[k] = n.body(k, v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.body(key, v[i])
		}
		return out
	case string:
		return n.answered(key, v)
	case float64:
		if v >= account || strings.HasSuffix(key, "TimeStamp") || key == "OrderId" || key == "AutoReleaseTime" {
			return float64(0)
		}
	}
	return v
}

func (n *names) answered(key, value string) string {
	switch {
	case value == "":
		return ""
	case hidden[key], ofOneAnswer[key]:
		return redacted
	case moments.MatchString(value):
		return "${time}"
	}
	if p, err := netip.ParsePrefix(value); err == nil && !ownRange.Overlaps(p) {
		return "${range}"
	}
	_, notAddress := netip.ParseAddr(value)
	if _, known := n.byValue[value]; !known && (notAddress == nil || ids.MatchString(key) && !kept[key]) {
		kind := strings.ToLower(key)
		if notAddress == nil {
			kind = "address"
		}
		n.counts[kind]++
		n.add(value, fmt.Sprintf("%s-%d", kind, n.counts[kind]))
	}
	return addresses.ReplaceAllString(arns.ReplaceAllString(n.text(value), "${1}"+redacted), "$${address}")
}

// parameter returns a value of a request with names in it.
func (n *names) parameter(key, value string) string {
	if hidden[key] && !strings.HasPrefix(value, "made: ") {
		return redacted
	}
	return n.text(value)
}

func (n *names) text(value string) string {
	if name, known := n.byValue[value]; known {
		return "${" + name + "}"
	}
	for _, long := range n.long {
		value = strings.ReplaceAll(value, long, "${"+n.byValue[long]+"}")
	}
	return digits.ReplaceAllLiteralString(value, "${number}")
}

// ownRange has the destinations of the routes that scenarios make.
var ownRange = netip.MustParsePrefix("172.31.0.0/16")

var placeholder = regexp.MustCompile(`\$\{([a-z0-9-]+)\}`)

// bindings are the values of names in a replay.
type bindings map[string]string

// learn takes values out of an answer for the names in a recorded one.
func (b bindings) learn(recorded, answer any) {
	switch r := recorded.(type) {
	case map[string]any:
		a, _ := answer.(map[string]any)
		for key := range r {
			b.learn(r[key], a[key])
		}
	case []any:
		a, _ := answer.([]any)
		for i := range min(len(r), len(a)) {
			b.learn(r[i], a[i])
		}
	case string:
		value, ok := answer.(string)
		if name := placeholder.FindStringSubmatch(r); ok && name != nil && name[0] == r && b[name[1]] == "" {
			b[name[1]] = value
		}
	}
}

// expand returns a text with values in the place of names.
func (b bindings) expand(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		if value := b[name[2:len(name)-1]]; value != "" {
			return value
		}
		return name
	})
}
