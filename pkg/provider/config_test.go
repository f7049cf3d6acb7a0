package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

func TestReadConfig(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file string
		want Config
	}{
		"the vendor's guide": {
			`{"Global": {"accessKeyID": "aWQ=", "accessKeySecret": "c2VjcmV0", "region": "cn-hangzhou"}}`,
			Config{AccessKeyID: "id", AccessKeySecret: "secret", Region: "cn-hangzhou"},
		},
		"YAML, other letter case, unknown keys": {
			"global:\n  ACCESSKEYID: aWQ=\n  accesskeysecret: c2VjcmV0\n  Region: cn-beijing-finance-1\n  privateZoneId: x\n",
			Config{AccessKeyID: "id", AccessKeySecret: "secret", Region: "cn-beijing-finance-1", Unused: []string{"Global.privateZoneId"}},
		},
		"fields of the official CCM without effect here": {
			`{"Global": {"zoneid": "cn-hangzhou-a", "kubernetesClusterTag": "t", "nodeMaxConcurrentReconciles": 2, "routeMaxConcurrentReconciles": 2,
			  "nodeMonitorPeriod": 5, "nodeAddrSyncPeriod": 5, "privateZoneId": "z", "privateZoneRecordTTL": 60}}`,
			Config{Unused: []string{
				"Global.zoneid", "Global.kubernetesClusterTag", "Global.nodeMaxConcurrentReconciles", "Global.routeMaxConcurrentReconciles",
				"Global.nodeMonitorPeriod", "Global.nodeAddrSyncPeriod", "Global.privateZoneId", "Global.privateZoneRecordTTL",
			}},
		},
		"misspelled, and in the wrong place": {
			`{"Global": {"pausd": true, "VpcID": "vpc-1", "allowedIds": []}, "paused": true}`,
			Config{VPCID: "vpc-1", Policy: policy.Policy{AllowedIDs: []policy.IDRule{}},
				Unknown: []string{"Global.pausd (did you mean paused?)", "paused (belongs below Global)"}},
		},
		"misspelled at the top": {"Globl: {}\nother: 1\n", Config{Unknown: []string{"Globl (did you mean Global?)", "other"}}},
		"misspelled, in other English, and without a similar name": {
			`{"Global": {"disableQuotaCentre": true, "speed": 1}}`,
			Config{Unknown: []string{"Global.disableQuotaCentre (did you mean disableQuotaCenter?)", "Global.speed"}},
		},
		"misspelled in a rule": {
			`{"Global": {"allowedIDs": [{"namespaces": ["a"], "ids": ["b"], "namespase": ["c"]}]}}`,
			Config{
				Policy:  policy.Policy{AllowedIDs: []policy.IDRule{{Namespaces: []string{"a"}, IDs: []string{"b"}}}},
				Unknown: []string{"Global.allowedIDs[0].namespase (did you mean namespaces?)"},
			},
		},
		"numbers and booleans as text, in YAML": {
			"Global:\n  clusterID: 1e7\n  zoneid: 5\n  resourceGroupID: 123456789012345678\n  vpcid: null\n",
			Config{ClusterID: "1e+07", ResourceGroupID: "123456789012345678", Unused: []string{"Global.zoneid"}},
		},
		"feature gates": {`{"Global": {"featureGates": "EndpointSlice=false, IPv6DualStack=true"}}`, Config{NodeIPv6: true}},
		"endpoints": {
			`{"Global": {"endpoints": {"slb": "slb.example", "metadata": "http://127.0.0.1:8"}}}`,
			Config{Endpoints: Endpoints{"slb": "slb.example", "metadata": "http://127.0.0.1:8"}},
		},
		"newline inside the base64, as echo leaves one": {
			`{"Global": {"accessKeyID": "aWQK", "accessKeySecret": "c2VjcmV0Cg=="}}`,
			Config{AccessKeyID: "id", AccessKeySecret: "secret"},
		},
		"vSwitches with zones": {
			`{"Global": {"vpcid": "vpc-1", "vswitchid": "cn-hangzhou-a:vsw-1, :vsw-2,vsw-3"}}`,
			Config{VPCID: "vpc-1", VSwitchIDs: []string{"vsw-1", "vsw-2", "vsw-3"}},
		},
		"everything else": {
			`{"Global": {"clusterID": "c1", "routeTableIDs": "vtb-1, vtb-2", "resourceGroupID": " rg-1 ", "disablePublicSLB": true, "serviceBackendType": "eni", "serviceMaxConcurrentReconciles": 5, "featureGates": "EndpointSlice=true, LoadBalancerTypeAnnotation=true"}}`,
			Config{
				ClusterID: "c1", RouteTableIDs: []string{"vtb-1", "vtb-2"}, ResourceGroupID: "rg-1",
				DisablePublicSLB: true, BackendENI: true, ServiceWorkers: 5, TypeAnnotation: true,
			},
		},
		"policy": {
			`{"Global": {"loadBalancerReuse": "tagged", "allowedIDs": [{"namespaces": ["team-*"], "ids": ["cert-1"]}]}}`,
			Config{Policy: policy.Policy{LoadBalancerReuse: policy.ReuseTagged,
				AllowedIDs: []policy.IDRule{{Namespaces: []string{"team-*"}, IDs: []string{"cert-1"}}}}},
		},
		"policy of addresses": {
			`{"Global": {"endpointAddresses": "pods", "allowedAddresses": [{"namespaces": ["db"], "cidrs": ["10.0.8.0/24"]}]}}`,
			Config{Policy: policy.Policy{
				EndpointAddresses: policy.AddressesPods,
				AllowedAddresses:  []policy.AddressRule{{Namespaces: []string{"db"}, CIDRs: []string{"10.0.8.0/24"}}},
			}},
		},
		"subset and quotas": {
			`{"Global": {"backendSubset": 25, "quotas": {"slb_quota_backendservers_num": 400}, "disableQuotaCenter": true}}`,
			Config{BackendSubset: 25, Quotas: map[string]int{"slb_quota_backendservers_num": 400}, DisableQuotaCenter: true},
		},
		"subset as text":          {`{"Global": {"backendSubset": "25"}}`, Config{BackendSubset: 25}},
		"subset by a word":        {`{"Global": {"backendSubset": "off"}}`, Config{BackendSubset: backend.SubsetOff}},
		"subset without a number": {`{"Global": {"backendSubset": null}}`, Config{}},
		"off without quotes": {
			"Global:\n  backendSubset: off\n  loadBalancerReuse: off\n",
			Config{BackendSubset: backend.SubsetOff, Policy: policy.Policy{LoadBalancerReuse: policy.ReuseOff}},
		},
		"empty": {"", Config{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadConfig(strings.NewReader(test.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, ignoreEmptyLists); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadConfigWithoutFile(t *testing.T) {
	t.Parallel()
	got, err := ReadConfig(nil)
	if diff := cmp.Diff(Config{}, got); err != nil || diff != "" {
		t.Errorf("ReadConfig(nil) = %v, %v", diff, err)
	}
}

func TestReadConfigRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file string
		want []string // each must be in the error
	}{
		"no YAML":   {"Global: {accessKeyID: [", []string{"not valid YAML or JSON", "line"}},
		"no object": {`["a"]`, []string{"accepted: "}},
		"wrong type": {`{"Global": {"serviceMaxConcurrentReconciles": "many"}}`,
			[]string{`Global.serviceMaxConcurrentReconciles: "many", accepted: a whole number`}},
		"plain key": {`{"Global": {"accessKeyID": "LTAI-not-base64", "accessKeySecret": "c2VjcmV0"}}`,
			[]string{"Global.accessKeyID", "base64"}},
		"key in half":   {`{"Global": {"accessKeyID": "aWQ="}}`, []string{"accessKeySecret", "both or neither"}},
		"region":        {`{"Global": {"region": "China East"}}`, []string{`Global.region: "China East"`, "cn-hangzhou"}},
		"VPC":           {`{"Global": {"vpcid": "vsw-1"}}`, []string{`Global.vpcid: "vsw-1"`, `"vpc-"`}},
		"vSwitch":       {`{"Global": {"vswitchid": "cn-hangzhou-a:subnet-1"}}`, []string{`Global.vswitchid: "cn-hangzhou-a:subnet-1"`}},
		"route table":   {`{"Global": {"routeTableIDs": "vtb-1,rtb-2"}}`, []string{`Global.routeTableIDs: "rtb-2"`}},
		"cluster id":    {`{"Global": {"clusterID": "a/b"}}`, []string{`Global.clusterID: "a/b"`}},
		"backend type":  {`{"Global": {"serviceBackendType": "pod"}}`, []string{`Global.serviceBackendType: "pod"`, `"ecs" or "eni"`}},
		"token service": {`{"Global": {"uid": "123"}}`, []string{"Global.uid: the value (not shown)"}},
		"feature gates": {`{"Global": {"featureGates": "IPv6DualStack"}}`, []string{`Global.featureGates: "IPv6DualStack"`, "accepted: "}},
		"endpoint":      {`{"Global": {"endpoints": {"slb": "a b"}}}`, []string{`Global.endpoints.slb: "a b"`, "host:port"}},
		"endpoint of":   {`{"Global": {"endpoints": {"ros": "a"}}}`, []string{`Global.endpoints.ros`, "slb, nlb, vpc, ecs"}},
		"unused, type":  {`{"Global": {"nodeMonitorPeriod": "5m"}}`, []string{`Global.nodeMonitorPeriod: "5m", accepted: a whole number`}},
		"policy": {`{"Global": {"loadBalancerReuse": "yes", "allowedIDs": [{"ids": ["[a"]}]}}`,
			[]string{`Global.loadBalancerReuse: "yes"`, "allowedIDs[0].namespaces", `allowedIDs[0].ids: "[a"`}},
		"policy, type": {`{"Global": {"loadBalancerReuse": true}}`, []string{`Global.loadBalancerReuse: "true"`}},
		"subset":       {`{"Global": {"backendSubset": "some"}}`, []string{`Global.backendSubset: "some"`, `"auto", "off"`}},
		"subset, none": {`{"Global": {"backendSubset": -2}}`, []string{`Global.backendSubset: "-2"`}},
		"quota": {`{"Global": {"quotas": {"backends": 1, "slb_quota_listeners_num": 0}}}`,
			[]string{`Global.quotas: "backends"`, "slb_quota_backendservers_num", "Global.quotas.slb_quota_listeners_num: 0"}},
		"all at once":     {`{"Global": {"region": "X", "vpcid": "Y"}}`, []string{"Global.region", "Global.vpcid"}},
		"workers":         {`{"Global": {"serviceMaxConcurrentReconciles": -1}}`, []string{"Global.serviceMaxConcurrentReconciles: -1"}},
		"decoded, binary": {`{"Global": {"accessKeyID": "LTAI5tAbCdEf", "accessKeySecret": "c2VjcmV0"}}`, []string{"Global.accessKeyID"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadConfig(strings.NewReader(test.file))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error has several lines: %q", err)
			}
		})
	}
}

// TestReadConfigWrongTypes: each message names the field as it is documented, the value, and what is accepted, without a word about Go.
func TestReadConfigWrongTypes(t *testing.T) {
	t.Parallel()
	const subset = `accepted: "auto", "off", or a number of nodes from 1 to 9999`
	for global, want := range map[string]string{
		`{"backendSubset": 0}`:                   `Global.backendSubset: "0", ` + subset,
		`{"backendSubset": true}`:                `Global.backendSubset: "true", ` + subset,
		`{"backendSubset": "+7"}`:                `Global.backendSubset: "+7", ` + subset,
		`{"backendSubset": "007"}`:               `Global.backendSubset: "007", ` + subset,
		`{"backendSubset": 2.5}`:                 `Global.backendSubset: "2.5", ` + subset,
		`{"backendSubset": 99999999999}`:         `Global.backendSubset: "99999999999", ` + subset,
		`{"BACKENDSUBSET": [25]}`:                `Global.backendSubset: a list, ` + subset,
		`{"quotas": ["slb"]}`:                    `Global.quotas: a list, accepted: an object with numbers, such as {"slb_quota_listeners_num": 70}`,
		`{"quotas": {"slb_quota_acls_num": ""}}`: `Global.quotas.slb_quota_acls_num: "", accepted: a whole number, without quotes`,
		`{"quotas": {"slb_quota_acls_num": "70", "slb_quota_instances_num": 1.5, "slb_quota_listeners_num": -1, "x": 1}}`: `Global.quotas.slb_quota_acls_num: "70", accepted: ` +
			`a whole number, without quotes; Global.quotas.slb_quota_instances_num: 1.5, accepted: a whole number, without quotes; ` +
			`Global.quotas.slb_quota_listeners_num: -1, accepted: 1 or more; Global.quotas: "x", accepted: ` + strings.Join(quota.Codes(), ", "),
		`{"endpoints": "slb.example"}`:                     `Global.endpoints: "slb.example", accepted: an object with text, such as {"slb": "slb.example"}`,
		`{"endpoints": {"slb": {}}}`:                       `Global.endpoints.slb: an object, accepted: text`,
		`{"paused": "true"}`:                               `Global.paused: "true", accepted: true or false, without quotes`,
		`{"disablePublicSLB": 1}`:                          `Global.disablePublicSLB: 1, accepted: true or false, without quotes`,
		`{"region": ["cn-hangzhou"]}`:                      `Global.region: a list, accepted: text`,
		`{"accessKeySecret": ["c2VjcmV0"], "region": "X"}`: `Global.accessKeySecret: the value (not shown), accepted: text; Global.region: "X", accepted: a region id such as "cn-hangzhou"`,
		`{"nodeMonitorPeriod": 1.5}`:                       `Global.nodeMonitorPeriod: 1.5, accepted: a whole number, without quotes`,
		`{"allowedIDs": {"ids": ["a"]}}`:                   `Global.allowedIDs: an object, accepted: a list, each item of which is an object with ids and namespaces`,
		`{"allowedIDs": ["a"]}`:                            `Global.allowedIDs[0]: "a", accepted: an object with ids and namespaces`,
		`{"allowedIDs": [{"ids": "cert-1", "namespaces": ["a", ["b"]]}]}`: `Global.allowedIDs[0].ids: "cert-1", accepted: a list, each item of which is text; ` +
			`Global.allowedIDs[0].namespaces[1]: a list, accepted: text`,
		`"aWQ="`: `Global: not an object, accepted: an object with the fields of the cloud-config`,
	} {
		_, err := ReadConfig(strings.NewReader(`{"Global": ` + global + `}`))
		if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
			t.Errorf("%s (-want +got):\n%s", global, d)
		}
	}
}

func FuzzReadConfigHidesSecrets(f *testing.F) {
	f.Add("LTAI5tSecretKeyValue", "{")
	f.Add("c2VjcmV0", "cn-hangzhou")
	f.Fuzz(func(t *testing.T, secret, region string) {
		const marker = "S3cretMarker"
		file := "Global:\n  accessKeySecret: " + marker + secret + "\n  region: " + region + "\n"
		_, err := ReadConfig(strings.NewReader(file))
		if err != nil && strings.Contains(err.Error(), marker) && !strings.Contains(region, marker) {
			t.Errorf("the error shows the secret: %v", err)
		}
	})
}
