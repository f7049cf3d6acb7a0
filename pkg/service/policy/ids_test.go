package policy

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// samples are values that name foreign-1, or with it a resource that is allowed.
var samples = map[annotation.Suffix]string{
	annotation.VGroupPort:         "rsp-ours:80,rsp-foreign:81", // NLB: sgp-
	annotation.CertID:             "foreign-1",
	annotation.DomainExtensions:   "a.example.com:cert-ours,b.example.com:foreign-1",
	annotation.ACLID:              "acl-ours,acl-foreign",
	annotation.ResourceGroupID:    "rg-foreign",
	annotation.VSwitchID:          "vsw-foreign",
	annotation.ZoneMaps:           "cn-hangzhou-a:vsw-ours,cn-hangzhou-b:vsw-foreign",
	annotation.SecurityGroupIDs:   "sg-ours,sg-foreign",
	annotation.BandwidthPackageID: "cbwp-foreign",
	annotation.AdditionalCertIDs:  "cert-ours,foreign-1",
	annotation.CACertID:           "foreign-1",
}

// namesIDs tells by its name that an annotation names resources by ID. TestEveryIDIsRestricted finds one that the table lacks.
var namesIDs = regexp.MustCompile(`-ids?$|-zone-maps$|-vgroup-port$|-domain-extensions$`)

// TestEveryIDIsRestricted: every annotation of every product that names resources of the account is refused when it names one that no rule
// of the namespace allows, and accepted when a rule does.
func TestEveryIDIsRestricted(t *testing.T) {
	t.Parallel()
	clb := func(svc *corev1.Service) (annotation.Params, []problem.Problem) {
		return annotation.Parse(svc.Annotations)
	}
	for product, read := range map[string]struct {
		rows []annotation.Row
		of   func(*corev1.Service) (annotation.Params, []problem.Problem)
	}{"CLB": {annotation.Table(), clb}, "NLB": {annotation.NLBTable(), annotation.OfNLB}} {
		for _, row := range read.rows {
			if row.Suffix == annotation.LoadBalancerID || !namesIDs.MatchString(string(row.Suffix)) {
				continue
			}
			t.Run(product+" "+string(row.Suffix), func(t *testing.T) {
				t.Parallel()
				sample, ok := samples[row.Suffix]
				if product == "NLB" {
					sample = strings.ReplaceAll(sample, "rsp-", "sgp-")
				}
				if !ok || !slices.ContainsFunc(named, func(r struct {
					suffix annotation.Suffix
					ids    func(annotation.Params) []string
				}) bool {
					return r.suffix == row.Suffix
				}) {
					t.Fatal("names resources of the account, and the policy does not know it")
				}
				svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"service.beta.kubernetes.io/alibaba-cloud-" +
					string(row.Suffix): sample}}}
				params, _ := read.of(svc)
				if !params.Has(row.Suffix) {
					t.Fatalf("the sample %q is no value of it", sample)
				}
				rules := Policy{AllowedIDs: []IDRule{{Namespaces: []string{"team-*"}, IDs: []string{"*ours"}},
					{Namespaces: []string{"other"}, IDs: []string{"*"}}}}
				after, problems := rules.Restrict("team-a", params)
				if after.Has(row.Suffix) || len(problems) != 1 || problems[0].Reason != problem.ReasonInvalidAnnotation ||
					!strings.Contains(problems[0].Message, "foreign") {
					t.Errorf("%q is accepted, problems %v", sample, problems)
				}
				rules.AllowedIDs[0].IDs = []string{"*ours", "*foreign*"}
				if after, problems = rules.Restrict("team-a", params); !after.Has(row.Suffix) || len(problems) != 0 {
					t.Errorf("%q is refused although both IDs are allowed: %v", sample, problems)
				}
				if after, _ = rules.Restrict("teams", params); after.Has(row.Suffix) {
					t.Errorf("%q is accepted in a namespace without a rule", sample)
				}
				if after, problems = (Policy{}).Restrict("teams", params); !after.Has(row.Suffix) || len(problems) != 0 {
					t.Errorf("%q is refused without any rule: %v", sample, problems)
				}
			})
		}
	}
}

// TestAllows: the tag of an existing load balancer names the cluster, or the cluster and a pattern of namespaces.
func TestAllows(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"c1": true, "c1/team-a": true, "c1/team-*": true, "c2, c1/team-a": true, "c1/*": true,
		"": false, "c2": false, "c1/": false, "c1/team": false, "c2/team-a": false, "c1/team-a/x": false, "/team-a": false, "*": false,
	} {
		if got := Allows(value, "c1", "team-a"); got != want {
			t.Errorf("%q allows: %v, want %v", value, got, want)
		}
	}
	if Allows("", "", "team-a") {
		t.Error("an empty tag allows a cluster without ID")
	}
}
