package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// TestPolicyFlag: a rule that is mistyped is an error, because otherwise it would restrict nothing.
func TestPolicyFlag(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]policy.Policy{
		"":   {},
		"{}": {},
		`{"loadBalancerReuse": "tagged", "allowedIDs": [{"namespaces": ["team-*"], "ids": ["cert-1"]}]}`: {
			LoadBalancerReuse: policy.ReuseTagged, AllowedIDs: []policy.IDRule{{Namespaces: []string{"team-*"}, IDs: []string{"cert-1"}}},
		},
		`{"endpointAddresses": "pods", "allowedAddresses": [{"namespaces": ["db"], "cidrs": ["10.0.8.0/24"]}]}`: {
			EndpointAddresses: policy.AddressesPods,
			AllowedAddresses:  []policy.AddressRule{{Namespaces: []string{"db"}, CIDRs: []string{"10.0.8.0/24"}}},
		},
		`{"allowedGroups": [{"namespaces": [7], "groups": ["edge/*"]}]}`: {AllowedGroups: []policy.GroupRule{{Namespaces: []string{"7"},
			Groups: []string{"edge/*"}}}},
	} {
		flags := ownFlags{policy: given}
		got, err := flags.tenantPolicy()
		if err != nil {
			t.Errorf("%q: %v", given, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", given, diff)
		}
	}
	for given, want := range map[string]string{
		"tagged":                                                 "invalid character",
		`{"loadBalancerReuse": "yes"}`:                           `loadBalancerReuse: "yes"`,
		`{"loadBalancerReuses": "tagged"}`:                       "unknown field loadBalancerReuses (did you mean loadBalancerReuse?)",
		`{"allowedIDs": [{"namespace": []}]}`:                    "unknown field allowedIDs[0].namespace (did you mean namespaces?)",
		`["tagged"]`:                                             "a list, accepted: an object with allowedAddresses, ",
		`{"loadBalancerReuse": {}}`:                              "loadBalancerReuse: an object, accepted: text",
		`{"allowedIDs": "*"}`:                                    `allowedIDs: "*", accepted: a list, each item of which is an object with ids and namespaces`,
		`{"allowedIDs": [{"ids": "*"}]}`:                         `allowedIDs[0].ids: "*", accepted: a list, each item of which is text`,
		`{} {"endpointAddresses": "any"}`:                        "not valid JSON (text after the end of the object)",
		`{"allowedIDs": [{}]}`:                                   "allowedIDs[0].namespaces: empty",
		`{"allowedIDs": [{"namespaces": ["a"], "ids": ["[a"]}]}`: `allowedIDs[0].ids: "[a"`,
		`{"allowedGroups": [{"namespaces": ["a"]}]}`:             "allowedGroups[0].groups: empty",
		`{"endpointAddresses": "nodes"}`:                         `endpointAddresses: "nodes"`,
		`{"allowedAddresses": [{"namespaces": ["a"]}]}`:          "allowedAddresses[0].cidrs: empty",
		`{"allowedAddresses": [{"namespaces": ["a"], "cidrs": ["10.0.0.1"]}]}`: `allowedAddresses[0].cidrs: "10.0.0.1"`,
	} {
		flags := ownFlags{policy: given}
		_, err := flags.tenantPolicy()
		if err == nil || !strings.HasPrefix(err.Error(), "--policy: ") || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%q: error %v, want one line with %q", given, err, want)
		}
	}
}
