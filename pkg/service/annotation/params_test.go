package annotation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func newKey(suffix Suffix) string { return Prefixes[0] + string(suffix) }

func reasons(problems []problem.Problem) []string {
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
		{"new prefix", map[string]string{newKey(Scheduler): "wrr"}, Scheduler, "wrr", nil},
		{"old prefix", map[string]string{old(Scheduler): "wrr"}, Scheduler, "wrr", nil},
		{"new prefix wins", map[string]string{newKey(Scheduler): "wrr", old(Scheduler): "rr"}, Scheduler, "wrr",
			[]string{problem.ReasonAnnotationNoEffect}},
		{"both agree", map[string]string{newKey(Scheduler): "wrr", old(Scheduler): "wrr"}, Scheduler, "wrr", nil},
		{"white space around the value", map[string]string{newKey(Scheduler): " wrr\t"}, Scheduler, "wrr", nil},
		{"case of the address type", map[string]string{newKey(AddressType): "Intranet"}, AddressType, "intranet", nil},
		{"case of others", map[string]string{newKey(Scheduler): "WRR"}, Scheduler, "", []string{problem.ReasonInvalidAnnotation}},
		{"quoted twice", map[string]string{newKey(ForceOverrideListeners): `"true"`, newKey(LoadBalancerID): "lb-1"}, ForceOverrideListeners, "",
			[]string{problem.ReasonInvalidAnnotation}},
		{"out of range", map[string]string{newKey(HealthyThreshold): "11"}, HealthyThreshold, "", []string{problem.ReasonInvalidAnnotation}},
		{"at the bound", map[string]string{newKey(HealthyThreshold): "10"}, HealthyThreshold, "10", nil},
		{"no number", map[string]string{newKey(HealthyThreshold): "three"}, HealthyThreshold, "", []string{problem.ReasonInvalidAnnotation}},
		{"number with sign", map[string]string{newKey(HealthyThreshold): "+3"}, HealthyThreshold, "", []string{problem.ReasonInvalidAnnotation}},
		{"zero connect port", map[string]string{newKey(HealthCheckConnectPort): "0"}, HealthCheckConnectPort, "",
			[]string{problem.ReasonInvalidAnnotation}},
		{"backend port", map[string]string{newKey(HealthCheckConnectPort): "-520"}, HealthCheckConnectPort, "-520", nil},
		{"NLB id", map[string]string{newKey(LoadBalancerID): "nlb-1"}, LoadBalancerID, "", []string{problem.ReasonInvalidAnnotation}},
		{"drain without timeout", map[string]string{newKey(ConnectionDrain): "on"}, ConnectionDrain, "",
			[]string{problem.ReasonInvalidAnnotation}},
		{"bandwidth alone", map[string]string{newKey(Bandwidth): "10"}, Bandwidth, "10", []string{problem.ReasonAnnotationNoEffect}},
		{"unknown key", map[string]string{Prefixes[0] + "loadbalancer-color": "red"}, Scheduler, "", []string{problem.ReasonUnknownAnnotation}},
		{"misspelled key", map[string]string{Prefixes[0] + "loadbalancer-schedular": "rr"}, Scheduler, "",
			[]string{problem.ReasonUnknownAnnotation}},
		{"dead key", map[string]string{Prefixes[0] + "slb-network-type": "vpc"}, NetworkType, "", []string{problem.ReasonUnknownAnnotation}},
		{"key with a tab", map[string]string{newKey(Scheduler) + "\t": "rr"}, Scheduler, "", []string{problem.ReasonUnknownAnnotation}},
		{"another family", map[string]string{Prefixes[0] + "private-zone-enable": "on"}, Scheduler, "", nil},
		{"certificates of domains", map[string]string{newKey(DomainExtensions): "a.example.com:cert-1"}, DomainExtensions, "a.example.com:cert-1",
			nil},
		{"domain twice", map[string]string{newKey(DomainExtensions): "a.example.com:cert-1,A.example.com:cert-2"}, DomainExtensions, "",
			[]string{problem.ReasonInvalidAnnotation}},
		{"key of an NLB", map[string]string{Prefixes[1] + "loadbalancer-zone-maps": "cn-hangzhou-a:vsw-1"}, Scheduler, "",
			[]string{problem.ReasonAnnotationNoEffect}},
		{"type", map[string]string{newKey(Type): "nlb"}, Scheduler, "", []string{problem.ReasonAnnotationNoEffect}},
		{"unclear wish to preserve", map[string]string{newKey(PreserveOnDelete): "yes"}, PreserveOnDelete, "yes",
			[]string{problem.ReasonAnnotationNoEffect}},
		{"classic network of the internet", map[string]string{newKey(NetworkType): "classic"}, NetworkType, "classic",
			[]string{problem.ReasonAnnotationNoEffect}},
		{"kind of ACL alone", map[string]string{newKey(ACLType): "white"}, ACLType, "white", []string{problem.ReasonAnnotationNoEffect}},
		{"empty", map[string]string{newKey(Bandwidth): "", newKey(HealthyThreshold): " \t", BackendType: ""}, Bandwidth, "", nil},
		{"empty before the old prefix", map[string]string{newKey(Scheduler): "", old(Scheduler): "wrr"}, Scheduler, "", nil},
		{"cookie as the official CCM's users write it", map[string]string{newKey(Cookie): "route-id"}, Cookie, "route-id", nil},
		{"backend type", map[string]string{BackendType: "pod"}, Scheduler, "", []string{problem.ReasonInvalidAnnotation}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			params, problems := Parse(test.annotations)
			if got := params.Get(test.suffix); got != test.want {
				t.Errorf("value %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(test.reasons, reasons(problems)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s\n%v", diff, problems)
			}
			invalid := len(test.reasons) == 1 && test.reasons[0] == problem.ReasonInvalidAnnotation
			if params.Invalid != invalid {
				t.Errorf("invalid = %v, want %v", params.Invalid, invalid)
			}
		})
	}
}

func TestProblemsNameTheAnnotationTheValueAndWhatIsAccepted(t *testing.T) {
	t.Parallel()
	_, problems := Parse(map[string]string{newKey(ForceOverrideListeners): `"true"`, newKey(HealthyThreshold): "11"})
	joined := problem.ByReason(problems)
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
	for _, row := range Table() {
		if seen[row.Suffix] {
			t.Errorf("%s stands twice", row.Suffix)
		}
		seen[row.Suffix] = true
		if row.Default != "" {
			if normal, ok := row.Value.Parse(row.Default); !ok || normal != row.Default {
				t.Errorf("%s: the default %q is not accepted in this form", row.Suffix, row.Default)
			}
		}
		if row.Value.Sample != "" {
			if _, ok := row.Value.Parse(row.Value.Sample); !ok {
				t.Errorf("%s: the sample %q is not accepted", row.Suffix, row.Value.Sample)
			}
		}
		if row.Attribute != "" && len(row.Protocols) == 0 {
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
		{"a=1,b=2", "a=1 b=2"}, {"a=1=2", "a=1"}, {"a", "a="}, {"a=", "a="}, {" a=1 , b=2", "a=1 b=2"},
		{"=1", ""}, {"a=1,a=2", ""}, {mark.TagOwner + "=x", ""}, {"acs:x=1", ""}, {"a=aliyunx", ""}, {"a=http://x", ""},
		{strings.Repeat("标", 64) + "=1", strings.Repeat("标", 64) + "=1"}, {strings.Repeat("k", 65) + "=1", ""},
		{"k=" + strings.Repeat("v", 129), ""}, {"", ""},
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
		first, _ := Parse(map[string]string{Prefixes[0] + suffix: value})
		again, _ := Parse(map[string]string{Prefixes[0] + suffix: first.Get(Suffix(suffix))})
		if first.Has(Suffix(suffix)) && again.Get(Suffix(suffix)) != first.Get(Suffix(suffix)) {
			t.Errorf("%s: %q becomes %q and then %q", suffix, value, first.Get(Suffix(suffix)), again.Get(Suffix(suffix)))
		}
	})
}

// TestManyUnknownKeysCostLittle: of thousands of unknown keys, some are compared with the known ones and reported, so that reading a
// Service costs about the same whatever the author of the Service writes. Each comparison allocates.
func TestManyUnknownKeysCostLittle(t *testing.T) { //nolint:paralleltest // counts what the whole process allocates
	annotations := map[string]string{}
	for i := range 3334 {
		annotations[fmt.Sprintf("%sloadbalancer-heelth-check-interval%04d", Prefixes[0], i)] = "1" // as long as known ones, or nearly
	}
	_, problems := Parse(annotations)
	if len(problems) != maxUnknown+1 || problems[maxUnknown].Message != "the other annotations were not checked for unknown keys" {
		t.Errorf("%d problems, the last one %v", len(problems), problems[len(problems)-1])
	}
	if allocations := testing.AllocsPerRun(1, func() { Parse(annotations) }); allocations > 5000 {
		t.Errorf("%.0f allocations", allocations)
	}
	for _, others := range []string{
		Prefixes[0] + "privatezone-heelth-check-interval%04d",  // others share the prefix, and are not reported
		"service.kubernetes.io/alibaba-cloud-heelth-check%04d", // or begin as ours do
		"service.alibabacloud.com/pa%04d",                      // or are as long as one of ours
	} {
		clear(annotations)
		for i := range 6000 {
			annotations[fmt.Sprintf(others, i)] = "1"
		}
		if allocations := testing.AllocsPerRun(1, func() { Parse(annotations) }); allocations > 5000 {
			t.Errorf("%.0f allocations for keys such as %s", allocations, others)
		}
	}
}

// TestKeysLikeOurs: keys with another domain, other words or without some of them have no effect, and are not left unmentioned. Those of
// other programs are.
func TestKeysLikeOurs(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"service.kubernetes.io/alibaba-cloud-loadbalancer-address-type":      newKey(AddressType),
		"service.beta.kubernetes.io/alibabacloud-loadbalancer-address-type":  newKey(AddressType),
		"service.beta.kubernetes.io/Alibaba-Cloud-Loadbalancer-Address-Type": newKey(AddressType),
		"service.beta.kubernetes.io/aliyun-loadbalancer-adress-type":         newKey(AddressType),
		"service.beta.kubernetes.io/alibaba-cloud-address-type":              newKey(AddressType),
		"service.beta.kubernetes.io/alicloud-address-type":                   Prefixes[1] + string(AddressType),
		"alibaba-cloud-loadbalancer-address-type":                            newKey(AddressType),
		"service.beta.kubernetes.io/backend-typ":                             BackendType,
		"service.alibabacloud.com/pause":                                     Paused,
		"service.alibabacloud.com/Paused":                                    Paused,
		"service.beta.kubernetes.io/aws-load-balancer-internal":              "",
		"service.beta.kubernetes.io/azure-load-balancer-internal":            "",
		"service.beta.kubernetes.io/alibaba-cloud-private-zone-name":         "",
		"backup.example.com/alibaba-cloud-loadbalancer-address-type":         "",
		"external-dns.alpha.kubernetes.io/hostname":                          "",
		"external-dns.alpha.kubernetes.io/alibaba-cloud-zone-type":           "",
		BackendType: "",
		Paused:      "",
	} {
		for _, product := range []*family{clbFamily, nlbFamily} {
			problems := product.unknownKeys(map[string]string{key: "intranet"})
			switch {
			case want == "" && len(problems) > 0:
				t.Errorf("%s: %v", key, problems)
			case want != "" &&
				(len(problems) != 1 || problems[0].Reason != problem.ReasonUnknownAnnotation ||
					problems[0].Message != fmt.Sprintf("%q is unknown; did you mean %s?", key, want)):
				t.Errorf("%s: %v, want one problem that names %s", key, problems, want)
			}
		}
	}
}
