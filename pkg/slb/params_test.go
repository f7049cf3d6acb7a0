package slb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func key(suffix Suffix) string { return Prefixes[0] + string(suffix) }

func reasons(problems []Problem) []string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.Reason)
	}
	return all
}

func TestParseParams(t *testing.T) {
	t.Parallel()
	old := func(suffix Suffix) string { return Prefixes[1] + string(suffix) }
	for _, test := range []struct {
		name        string
		annotations map[string]string
		suffix      Suffix
		want        string
		reasons     []string
	}{
		{"new prefix", map[string]string{key(Scheduler): "wrr"}, Scheduler, "wrr", nil},
		{"old prefix", map[string]string{old(Scheduler): "wrr"}, Scheduler, "wrr", nil},
		{"new prefix wins", map[string]string{key(Scheduler): "wrr", old(Scheduler): "rr"}, Scheduler, "wrr", []string{ReasonAnnotationNoEffect}},
		{"both agree", map[string]string{key(Scheduler): "wrr", old(Scheduler): "wrr"}, Scheduler, "wrr", nil},
		{"white space around the value", map[string]string{key(Scheduler): " wrr\t"}, Scheduler, "wrr", nil},
		{"case of the address type", map[string]string{key(AddressType): "Intranet"}, AddressType, "intranet", nil},
		{"case of others", map[string]string{key(Scheduler): "WRR"}, Scheduler, "", []string{ReasonInvalidAnnotation}},
		{"quoted twice", map[string]string{key(ForceOverrideListeners): `"true"`, key(LoadBalancerID): "lb-1"}, ForceOverrideListeners, "", []string{ReasonInvalidAnnotation}},
		{"out of range", map[string]string{key(HealthyThreshold): "11"}, HealthyThreshold, "", []string{ReasonInvalidAnnotation}},
		{"at the bound", map[string]string{key(HealthyThreshold): "10"}, HealthyThreshold, "10", nil},
		{"no number", map[string]string{key(HealthyThreshold): "three"}, HealthyThreshold, "", []string{ReasonInvalidAnnotation}},
		{"number with sign", map[string]string{key(HealthyThreshold): "+3"}, HealthyThreshold, "", []string{ReasonInvalidAnnotation}},
		{"zero connect port", map[string]string{key(HealthCheckConnectPort): "0"}, HealthCheckConnectPort, "", []string{ReasonInvalidAnnotation}},
		{"backend port", map[string]string{key(HealthCheckConnectPort): "-520"}, HealthCheckConnectPort, "-520", nil},
		{"NLB id", map[string]string{key(LoadBalancerID): "nlb-1"}, LoadBalancerID, "", []string{ReasonInvalidAnnotation}},
		{"drain without timeout", map[string]string{key(ConnectionDrain): "on"}, ConnectionDrain, "on", []string{ReasonInvalidAnnotation}},
		{"bandwidth alone", map[string]string{key(Bandwidth): "10"}, Bandwidth, "10", []string{ReasonAnnotationNoEffect}},
		{"unknown key", map[string]string{Prefixes[0] + "loadbalancer-colour": "red"}, Scheduler, "", []string{ReasonUnknownAnnotation}},
		{"misspelled key", map[string]string{Prefixes[0] + "loadbalancer-schedular": "rr"}, Scheduler, "", []string{ReasonUnknownAnnotation}},
		{"dead key", map[string]string{Prefixes[0] + "slb-network-type": "vpc"}, NetworkType, "", []string{ReasonUnknownAnnotation}},
		{"key with a tab", map[string]string{key(Scheduler) + "\t": "rr"}, Scheduler, "", []string{ReasonUnknownAnnotation}},
		{"another family", map[string]string{Prefixes[0] + "private-zone-enable": "on"}, Scheduler, "", nil},
		{"certificates of domains", map[string]string{key(DomainExtensions): "a.example.com:cert-1"}, DomainExtensions, "a.example.com:cert-1", nil},
		{"domain twice", map[string]string{key(DomainExtensions): "a.example.com:cert-1,A.example.com:cert-2"}, DomainExtensions, "", []string{ReasonInvalidAnnotation}},
		{"key of an NLB", map[string]string{Prefixes[1] + "loadbalancer-zone-maps": "cn-hangzhou-a:vsw-1"}, Scheduler, "", []string{ReasonAnnotationNoEffect}},
		{"type", map[string]string{key(Type): "nlb"}, Scheduler, "", []string{ReasonAnnotationNoEffect}},
		{"unclear wish to preserve", map[string]string{key(PreserveOnDelete): "yes"}, PreserveOnDelete, "yes", []string{ReasonAnnotationNoEffect}},
		{"classic network of the internet", map[string]string{key(NetworkType): "classic"}, NetworkType, "classic", []string{ReasonAnnotationNoEffect}},
		{"kind of ACL alone", map[string]string{key(ACLType): "white"}, ACLType, "white", []string{ReasonAnnotationNoEffect}},
		{"backend type", map[string]string{AnnotationBackendType: "pod"}, Scheduler, "", []string{ReasonInvalidAnnotation}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			params, problems := ParseParams(test.annotations)
			if got := params.Get(test.suffix); got != test.want {
				t.Errorf("value %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(test.reasons, reasons(problems)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s\n%v", diff, problems)
			}
			invalid := len(test.reasons) == 1 && test.reasons[0] == ReasonInvalidAnnotation
			if params.invalid != invalid {
				t.Errorf("invalid = %v, want %v", params.invalid, invalid)
			}
		})
	}
}

func TestProblemsNameTheAnnotationTheValueAndWhatIsAccepted(t *testing.T) {
	t.Parallel()
	_, problems := ParseParams(map[string]string{key(ForceOverrideListeners): `"true"`, key(HealthyThreshold): "11"})
	joined := byReason(problems)
	if len(joined) != 1 {
		t.Fatalf("%d events, want one: %v", len(joined), joined)
	}
	for _, part := range []string{"force-override-listeners", "remove the quotes", "healthy-threshold", `"11"`, "2 to 10"} {
		if !strings.Contains(joined[0].Message, part) {
			t.Errorf("%q does not say %q", joined[0].Message, part)
		}
	}
}

// TestTableIsSound checks what every row must have, so that a new row cannot forget it.
func TestTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[Suffix]bool{}
	for _, row := range Annotations() {
		if seen[row.Suffix] {
			t.Errorf("%s stands twice", row.Suffix)
		}
		seen[row.Suffix] = true
		if row.Default != "" {
			if normal, ok := row.Value.parse(row.Default); !ok || normal != row.Default {
				t.Errorf("%s: the default %q is not accepted in this form", row.Suffix, row.Default)
			}
		}
		if row.Value.Sample != "" {
			if _, ok := row.Value.parse(row.Value.Sample); !ok {
				t.Errorf("%s: the sample %q is not accepted", row.Suffix, row.Value.Sample)
			}
		}
		if (row.Attribute == "") != (len(row.Protocols) == 0) {
			t.Errorf("%s: attribute %q and protocols %v do not go together", row.Suffix, row.Attribute, row.Protocols)
		}
		if row.AtCreation && row.Default == "" {
			t.Errorf("%s: nothing to send at creation", row.Suffix)
		}
	}
}

func TestParseTags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want string // "" = refused
	}{
		{"a=1,b=2", "a=1 b=2"}, {"a=1=2", "a=1=2"}, {"a", "a="}, {"a=", "a="}, {" a=1 , b=2", "a=1 b=2"},
		{"=1", ""}, {"a=1,a=2", ""}, {tagOwner + "=x", ""}, {"acs:x=1", ""}, {"a=aliyunx", ""}, {"a=http://x", ""},
		{strings.Repeat("标", 64) + "=1", strings.Repeat("标", 64) + "=1"}, {strings.Repeat("k", 65) + "=1", ""}, {"k=" + strings.Repeat("v", 129), ""}, {"", ""},
	} {
		tags, err := parseTags(test.text)
		var texts []string
		for _, tag := range tags {
			texts = append(texts, tag.Key+"="+tag.Value)
		}
		if got := strings.Join(texts, " "); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("parseTags(%q) = %q, %v, want %q", test.text, got, err, test.want)
		}
	}
}

func FuzzParseParams(f *testing.F) {
	f.Add(string(HealthCheckHTTPCode), "http_2xx,http_3xx")
	f.Add(string(AdditionalTags), "a=1,b")
	f.Add(string(BackendLabel), "a=b")
	f.Add(string(IP), "10.0.0.1")
	f.Fuzz(func(t *testing.T, suffix, value string) {
		first, _ := ParseParams(map[string]string{Prefixes[0] + suffix: value})
		again, _ := ParseParams(map[string]string{Prefixes[0] + suffix: first.Get(Suffix(suffix))})
		if first.Has(Suffix(suffix)) && again.Get(Suffix(suffix)) != first.Get(Suffix(suffix)) {
			t.Errorf("%s: %q becomes %q and then %q", suffix, value, first.Get(Suffix(suffix)), again.Get(Suffix(suffix)))
		}
	})
}
