package provider

import (
	"slices"
	"strings"
	"testing"
)

// TestRedactConfig: keys are taken out, and so is every value whose meaning nobody knows: the field may be a misspelled key.
func TestRedactConfig(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"JSON": {
			`{"Global": {"accessKeyID": "aWQ=", "AccessKeySecret": "c2VjcmV0", "Region": "cn-hangzhou", "accessKeySecrett": "c2VjcmV0", "loadBalancerReuse": "tagged", "zoneid": "z"}}`,
			"Global:\n  AccessKeySecret: '[redacted]'\n  Region: cn-hangzhou\n  accessKeyID: '[redacted]'\n  accessKeySecrett: '[redacted]'\n  loadBalancerReuse: tagged\n  zoneid: z\n",
		},
		"YAML, and a key in the wrong place": {"accessKeySecret: c2VjcmV0\nglobal:\n  vpcid: vpc-1\n",
			"accessKeySecret: '[redacted]'\nglobal:\n  vpcid: vpc-1\n"},
		"Global is a text": {"Global: c2VjcmV0\n", "Global: '[redacted]'\n"},
		"empty":            {"", "{}\n"},
	} {
		if got, err := RedactConfig([]byte(test.text)); err != nil || got != test.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, test.want)
		}
	}
	if _, err := RedactConfig([]byte("{\"Global\": c2VjcmV0")); err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("what cannot be read: error %v, want one that quotes nothing", err)
	}
}

// TestSecrets: every source of keys counts, used or not; an ID that is a word is none.
func TestSecrets(t *testing.T) {
	t.Parallel()
	env := EnvironmentFrom(func(name string) string {
		return map[string]string{"ALIBABA_CLOUD_ACCESS_KEY_ID": "emulator", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "of-environment",
			"ALIBABA_CLOUD_SECURITY_TOKEN": "token"}[name]
	})
	cloud := New(Config{AccessKeyID: "LTAI0123456789", AccessKeySecret: "of-config"}, env)
	secrets := cloud.Secrets(t.Context())
	for _, want := range []string{"of-environment", "token", "of-config", "LTAI0123456789"} {
		if !slices.Contains(secrets, want) {
			t.Errorf("%q is not among %q", want, secrets)
		}
	}
	if slices.Contains(secrets, "emulator") {
		t.Error("a word is a secret")
	}
}
