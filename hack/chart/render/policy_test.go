package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/annotationpage"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

const policyTemplate = root + "/charts/cloud-controller-manager/templates/admission-policy.yaml"

// TestAdmissionPolicyIsFresh compares the chart's ValidatingAdmissionPolicy with the table that the program reads annotations by.
func TestAdmissionPolicyIsFresh(t *testing.T) { // not parallel: TestDeployIsFresh reads what it writes
	fresh(t, policyTemplate, []byte(renderAdmissionPolicy(t)))
}

// TestAdmissionPolicyJudgesLikeTheProgram evaluates the rules as the API server does: what one refuses at `kubectl apply` and the other
// accepts, or the other way round, would puzzle users.
func TestAdmissionPolicyJudgesLikeTheProgram(t *testing.T) {
	t.Parallel()
	base, err := environment.MustBaseEnvSet(version.MajorMinor(1, 30)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 30), EnvOptions: []cel.EnvOption{cel.Variable("value", cel.StringType)},
	})
	if err != nil {
		t.Fatal(err)
	}
	env := base.StoredExpressionsEnv()
	for _, row := range append(withBackendType(annotation.Table()), annotation.NLBTable()...) {
		expression := celRule(t, row.Value, "value.trim()")
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %s: %v", row.Suffix, expression, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range slices.Concat(oddValues,
			[]string{annotationpage.ExampleOf(row), row.Default, " " + annotationpage.ExampleOf(row) + "\t",
				strings.ToUpper(annotationpage.ExampleOf(row))}, bounds(row.Value)) {
			result, _, err := program.Eval(map[string]any{"value": text})
			if err != nil {
				t.Errorf("%s: %q: %v", row.Suffix, text, err)
				continue
			}
			if _, want := row.Value.Parse(strings.TrimSpace(text)); result.Value() != want {
				t.Errorf("%s: %q: the policy says %v, the program %t: %s", row.Suffix, text, result.Value(), want, expression)
			}
		}
	}
}

// oddValues are what users write by mistake, and corners of the kinds of values.
var oddValues = []string{
	"", " ", "yes", "'true'", `"on"`, "On", "0", "00", "-1", "+1", "1.5", "1e3", "99999999999999999999", "-520",
	"a,b", "a,,b", "a, b", "a,a", "a, a", ",", "=", "a=", "=b", "a=b=c", "a=b,a=c", "a==b", "a b=c", "a=b c", "-a=b", "a/b=c", "a.b/c=d",
	"A.b/c=d",
	"aliyun=1", "x=aliyun1", "acs:a=b", "a=acs:b", "a=http://b", "https://a=b", "kubernetes.do.not.delete=x", strings.Repeat("k", 65) + "=v",
	"k=" + strings.Repeat("v", 129), strings.Repeat("标", 64) + "=v", strings.Repeat("标", 65) + "=v",
	"1=1,2=2,3=3,4=4,5=5,6=6,7=7,8=8,9=9,10=1,11=1,12=1,13=1,14=1,15=1,16=1",
	"1=1,2=2,3=3,4=4,5=5,6=6,7=7,8=8,9=9,10=1,11=1,12=1,13=1,14=1,15=1,16=1,17=1",
	"1.2.3.4", "01.2.3.4", "256.1.1.1", "1.2.3", "::1", "::ffff:1.2.3.4", "1.2.3.4:80", "web.example.com", "Web.example.com",
	"web_1.example.com", "web..com", "-web.com",
	strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 127) + "a",
	"lb-1", "lb-", "nlb-1", "vsw-1", "rg-1", "acl-1,acl-2", "acl-1,acl-1", "http:80,https:443", "http:80, https:443", "tcp:0", "sctp:1",
	"1h", "1h1s", "59m60s", "0s", "1.5h", "90", "1s1h", "3600s", "1ms", "80:443", "rsp-1:80", "slb.s1.small", "nlb.s1.small",
	"http_2xx,http_3xx", "cn-hangzhou-a:vsw-1,cn-hangzhou-b:vsw-2", "cn-hangzhou-a:vsw-1::eip-1, cn-hangzhou-b:vsw-2:10.0.0.9",
	"cn-hangzhou-a", "nlb-1", "sgp-1:80", "sg-1,sg-2", "sg-1, sg-1",
	"80-400:80", "400:80", "tcpssl:443", "TCPSSL:443", "cbwp-1", "DualStack", "dualstack", "tls-x", "$SERVER_IP", "http1only", "/", "/a b",
	"/" + strings.Repeat("a", 79), "/" + strings.Repeat("a", 80), "$_ip", "web", "1web", "网站", "*.example.com:cert-1",
	"A.example.com:cert-1,a.example.com:cert-2", "a.b:c,c.d:c", "a.b:c, c.d:c ", "a.b:", ":c", "a:c", "a.b:c:d",
	strings.Repeat("a", 77) + ".bc:d", strings.Repeat("a", 78) + ".bc:d",
	"1.a:c,2.a:c,3.a:c,4.a:c,5.a:c,6.a:c,7.a:c,8.a:c,9.a:c,10.a:c,11.a:c",
}

func bounds(v annotation.Value) []string {
	var texts []string
	for _, number := range []int{v.Min - 1, v.Min, v.Max, v.Max + 1} {
		texts = append(texts, strconv.Itoa(number))
	}
	return append(texts, v.Also)
}

// admitted is a product whose annotations a policy judges.
type admitted struct {
	// policy is the name of the policy, and served a condition of CEL that holds for the Services of the product.
	policy, served string
	rows           []annotation.Row
}

// admittedProducts are all products. A Service without a class that the annotation loadbalancer-type may give to another product is left to
// the program: the policy does not know its feature gate.
func admittedProducts() []admitted {
	const class = "object.spec.?type.orValue('') == 'LoadBalancer' && object.spec.?loadBalancerClass.orValue('%[1]s') == '%[2]s'"
	tunneled, typed := celList(annotation.TunnelType.Keys()), celList(annotation.Type.Keys())
	clb := fmt.Sprintf(class+
		"\n      && object.metadata.?annotations['%[3]s'].orValue('') == ''\n      && !%[4]s.exists(k, object.metadata.?annotations[k].orValue('').trim() != '')"+
		"\n      && !%[5]s.exists(k, object.metadata.?annotations[k].orValue('').trim() == 'nlb')", classOfCLB, classOfCLB, annotationClass,
		tunneled, typed)
	nlb := fmt.Sprintf(class+"\n      && !%[3]s.exists(k, object.metadata.?annotations[k].orValue('').trim() != '')", "", classOfNLB, tunneled)
	return []admitted{
		{"cloud-controller-manager-annotations", clb, withBackendType(annotation.Table())},
		{"cloud-controller-manager-annotations-nlb", nlb, withBackendType(annotation.NLBTable())},
	}
}

// The classes of Services, and the annotation that hands one to another controller: the engines are not imported for three words.
const (
	classOfCLB      = "alibabacloud.com/clb"
	classOfNLB      = "alibabacloud.com/nlb"
	annotationClass = "service.beta.kubernetes.io/class"
)

// withBackendType are the annotations with a value that can be judged by itself.
func withBackendType(rows []annotation.Row) []annotation.Row {
	return append(slices.Clone(rows), annotationpage.BackendType)
}

// celRule is parse in CEL: whether the expression text, a string without surrounding space, is accepted.
func celRule(t *testing.T, v annotation.Value, text string) string {
	t.Helper()
	switch v.Kind {
	case annotation.Enum:
		values := slices.Clone(v.Values)
		if v.FoldCase {
			text += ".lowerAscii()"
			for i := range values {
				values[i] = strings.ToLower(values[i])
			}
		}
		return text + " in " + celList(values)
	case annotation.Integer:
		rule := fmt.Sprintf("%s.matches('^(0|-?[1-9][0-9]{0,8})$') && int(%[1]s) >= %[2]d && int(%[1]s) <= %[3]d", text, v.Min, v.Max)
		if v.Also != "" {
			rule += fmt.Sprintf(" || %s == %s", text, celString(v.Also))
		}
		return rule
	case annotation.Duration:
		return fmt.Sprintf("%[1]s != '' && %[1]s%[2]s && duration(%[1]s) >= duration('%[3]ds') && duration(%[1]s) <= duration('%[4]ds')", text,
			celMatches(annotation.DurationPattern), v.Min, v.Max)
	case annotation.Pattern:
		if v.Except != "" {
			return fmt.Sprintf("%[1]s%[2]s && !%[1]s%[3]s", text, celMatches(v.Pattern), celMatches(v.Except))
		}
		return text + celMatches(v.Pattern)
	case annotation.List:
		return fmt.Sprintf("%[1]s.split(',').all(e, e.trim()%[2]s) && %[1]s.split(',').all(e, %[1]s.split(',').exists_one(f, f.trim() == e.trim()))", text, celMatches(v.Pattern))
	case annotation.IPv4:
		return text + celMatches(ipv4Pattern)
	case annotation.DNSName:
		return fmt.Sprintf("size(%[1]s) <= 253 && %[1]s%[2]s && !%[1]s%[3]s", text, celMatches(dnsPattern), celMatches(ipv4Pattern))
	case annotation.Tags:
		return celTags(text)
	case annotation.Domains:
		return celDomains(text)
	case annotation.Selector:
		return text + fmt.Sprintf(".split(',').all(e, e%s)", celMatches(`\s*(`+dnsPattern+`/)?`+labelPart+`\s*=\s*(`+labelPart+`)?\s*`))
	default:
		t.Fatalf("values of kind %s have no form in CEL: add one", v.Kind)
		return ""
	}
}

// The forms of names in Kubernetes, https://kubernetes.io/docs/concepts/overview/working-with-objects/names/.
const (
	ipv4Pattern = `((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	dnsPattern  = `[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`
	labelPart   = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
)

// anyText is the pattern of annotations that count by being there.
const anyText = `.*`

// celTags is parseTags.
func celTags(text string) string {
	items := text + ".split(',')"
	return strings.Join([]string{
		fmt.Sprintf("size(%s) <= %d", items, annotation.MaxTags-annotation.OwnTags),
		fmt.Sprintf("%s.all(e, e.trim().matches(r'^[^=]{1,%d}(=(?s:.{0,%d}))?$'))", items, annotation.MaxTagKeyLen, annotation.MaxTagValueLen),
		fmt.Sprintf("!%s.exists(e, e.trim().matches('^([^=]*=)?(aliyun|acs:)') || e.contains('http://') || e.contains('https://'))", items),
		fmt.Sprintf("!%s.exists(e, e.trim().split('=')[0] in %s)", items,
			celList(slices.Sorted(slices.Values(annotation.ReservedTags.UnsortedList())))),
		fmt.Sprintf("%[1]s.all(e, %[1]s.exists_one(f, f.trim().split('=')[0] == e.trim().split('=')[0]))", items),
	}, " && ")
}

// celDomains is parseExtensions.
func celDomains(text string) string {
	items := text + ".split(',')"
	domain := func(item string) string { return item + ".trim().split(':')[0].lowerAscii()" }
	return strings.Join([]string{
		fmt.Sprintf("size(%s) <= %d", items, annotation.MaxExtensions),
		fmt.Sprintf("%s.all(e, e.trim()%s && size(%s) <= %d)", items, celMatches(annotation.DomainPattern+":"+annotation.CertificatePattern),
			domain("e"), annotation.MaxDomainLen),
		fmt.Sprintf("%[1]s.all(e, %[1]s.exists_one(f, %[2]s == %[3]s))", items, domain("f"), domain("e")),
	}, " && ")
}

func celMatches(pattern string) string { return ".matches(r'^(?:" + pattern + ")$')" }

func celString(text string) string { return "'" + strings.ReplaceAll(text, "'", `\'`) + "'" }

func celList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = celString(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// admissionGroup are the annotations that accept the same.
type admissionGroup struct {
	rule, accepts string
	keys          []string
}

func admissionGroups(t *testing.T, rows []annotation.Row) []admissionGroup {
	t.Helper()
	var groups []admissionGroup
	for _, row := range rows {
		if row.Value.Pattern == anyText {
			continue
		}
		rule := celRule(t, row.Value, "variables.annotations[k].trim()")
		i := slices.IndexFunc(groups, func(g admissionGroup) bool { return g.rule == rule && g.accepts == row.Value.Accepts() })
		if i < 0 {
			i, groups = len(groups), append(groups, admissionGroup{rule: rule, accepts: row.Value.Accepts()})
		}
		groups[i].keys = append(groups[i].keys, row.Suffix.Keys()...)
	}
	slices.SortStableFunc(groups, func(a, b admissionGroup) int { return cmp.Compare(len(b.keys), len(a.keys)) })
	return groups
}

// renderAdmissionPolicy returns the chart's template.
func renderAdmissionPolicy(t *testing.T) string {
	t.Helper()
	var policies []string
	for _, product := range admittedProducts() {
		policies = append(policies, renderPolicyOf(t, product))
	}
	return admissionBegin + strings.Join(policies, "---\n") + "{{- end }}\n"
}

// renderPolicyOf returns the policy of a product. Rules that several annotations share stand in it once.
func renderPolicyOf(t *testing.T, product admitted) string {
	t.Helper()
	var variables, validations strings.Builder
	for i, group := range admissionGroups(t, product.rows) {
		fmt.Fprintf(&variables, "  - name: bad%d\n    expression: >-\n      variables.changed.filter(k, k in %s\n      && !(%s))\n", i,
			celList(group.keys), group.rule)
		fmt.Fprintf(&validations,
			"  - expression: size(variables.bad%[1]d) == 0\n    messageExpression: >-\n      variables.bad%[1]d.map(k, k + ': \"' + variables.annotations[k] + '\"').join(', ')\n      + %[2]s\n",
			i, celString(" is not accepted; accepted: "+group.accepts))
	}
	text := fmt.Sprintf(admissionTemplate, product.policy, product.served, celString(annotation.Prefixes[0]),
		celString(annotation.Prefixes[1]), variables.String(), validations.String())
	if rest := strings.ReplaceAll(text, "{{- ", ""); strings.Count(rest,
		"{{") != strings.Count(admissionTemplate, "{{")-strings.Count(admissionTemplate, "{{- ") {
		t.Fatal("an expression holds {{, which Helm would read as its own")
	}
	return text
}

const admissionBegin = `{{- /* Generated by make generate from the tables of annotations in pkg/service/annotation. */ -}}
{{- if and .Values.admissionPolicy.enabled (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) -}}
`

// admissionTemplate takes the name, the condition, both prefixes, variables and validations.
const admissionTemplate = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: %[1]s
  labels: {{- include "ccm.labels" . | nindent 4 }}
spec:
  # The manager validates the values again, so requests may pass if this policy cannot be evaluated.
  failurePolicy: Ignore
  matchConstraints:
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      resources: [services, services/status]
      operations: [CREATE, UPDATE]
  matchConditions:
  {{- include "ccm.notTheManager" . | nindent 2 }}
  - name: served
    expression: >-
      %[2]s
  # Its finalizers must be removable, regardless of its annotations.
  - name: not-being-deleted
    expression: "!has(object.metadata.deletionTimestamp)"
  variables:
  - name: annotations
    expression: object.metadata.?annotations.orValue({})
  # Values from before this policy must not prevent other changes.
  - name: before
    expression: >-
      oldObject != null && oldObject.spec.?type.orValue('') == 'LoadBalancer' ? oldObject.metadata.?annotations.orValue({}) : {}
  # An empty value means that the annotation is not set, and a key with the older prefix counts only if the newer one is not set.
  - name: changed
    expression: >-
      variables.annotations.filter(k, !(k in variables.before && variables.before[k] == variables.annotations[k])
      && variables.annotations[k].trim() != ''
      && !(k.startsWith(%[4]s) && variables.annotations[?(%[3]s + k.substring(size(%[4]s)))].orValue('').trim() != ''))
%[5]s  validations:
%[6]s---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: %[1]s
  labels: {{- include "ccm.labels" . | nindent 4 }}
spec:
  policyName: %[1]s
  validationActions: [{{ .Values.admissionPolicy.action }}]
`
