package provider

import (
	"strings"
	"testing"
)

func environmentOf(variables map[string]string) Environment {
	return EnvironmentFrom(func(name string) string { return variables[name] })
}

func TestEnvironmentCheck(t *testing.T) {
	t.Parallel()
	role := func(change, value string) map[string]string {
		variables := map[string]string{
			envRoleARN: "acs:ram::1:role/ccm", envProviderARN: "acs:ram::1:oidc-provider/cluster", envTokenFile: "/token",
		}
		variables[change] = value
		return variables
	}
	for name, test := range map[string]struct {
		variables map[string]string
		want      []string // parts of the error; none: no error
	}{
		"nothing":           {},
		"official keys":     {variables: map[string]string{"ACCESS_KEY_ID": "a", "ACCESS_KEY_SECRET": "b"}},
		"keys of the tools": {variables: map[string]string{"ALIBABA_CLOUD_ACCESS_KEY_ID": "a", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "b"}},
		"role":              {variables: role(envSessionName, "my-session")},
		"endpoints": {variables: map[string]string{"SLB_ENDPOINT": "127.0.0.1:80", "VPC_ENDPOINT": "http://vpc:1",
			"ECS_ENDPOINT": "ecs.example", "METADATA_ENDPOINT": "http://127.0.0.1:8"}},
		"half a key": {
			map[string]string{"ACCESS_KEY_ID": "s3cret"}, []string{"ACCESS_KEY_ID, ACCESS_KEY_SECRET", "only one is set", "accepted: "},
		},
		"half a key of the tools": {map[string]string{"ALIBABA_CLOUD_ACCESS_KEY_SECRET": "s3cret"},
			[]string{"ALIBABA_CLOUD_ACCESS_KEY_ID", "accepted: "}},
		"no token file":     {role(envTokenFile, ""), []string{envTokenFile + `=""`, "accepted: all three"}},
		"role's name only":  {role(envRoleARN, "ccm"), []string{envRoleARN + `: "ccm"`, "acs:ram::<account>:role/<name>"}},
		"role for provider": {role(envProviderARN, "acs:ram::1:role/ccm"), []string{envProviderARN, "oidc-provider/"}},
		"session":           {role(envSessionName, "my session"), []string{envSessionName + `: "my session"`, "accepted: 2 to 32"}},
		"endpoint":          {map[string]string{"VPC_ENDPOINT": "ftp://x"}, []string{`VPC_ENDPOINT: "ftp://x"`, "host:port"}},
		"metadata": {map[string]string{"METADATA_ENDPOINT": "100.100.100.200"},
			[]string{`METADATA_ENDPOINT: "100.100.100.200"`, "http://100.100.100.200"}},
	} {
		err := environmentOf(test.variables).Check()
		if (err == nil) != (len(test.want) == 0) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %q, want one line that says %q", name, err, want)
			}
		}
	}
}

func TestEndpointsOrder(t *testing.T) {
	t.Parallel()
	cloud := New(Config{Endpoints: Endpoints{"slb": "file", "vpc": "file", "ecs": "file"}},
		environmentOf(map[string]string{"SLB_ENDPOINT": "env", "VPC_ENDPOINT": "env", "ALIBABA_CLOUD_STS_ENDPOINT": "sts"}))
	cloud.Configure(Settings{Endpoints: Endpoints{"slb": "flag"}})
	got := cloud.clientEndpoints()
	if got.SLB != "flag" || got.VPC != "env" || got.ECS != "file" || got.STS != "sts" {
		t.Errorf("endpoints %+v, want the flag's, the environment's, the file's", got)
	}
}
