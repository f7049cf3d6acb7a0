package provider

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func TestCredentialsOrder(t *testing.T) {
	t.Parallel()
	role := map[string]string{
		envRoleARN: "acs:ram::1:role/ccm", envProviderARN: "acs:ram::1:oidc-provider/cluster", envTokenFile: "/does/not/exist",
	}
	with := func(base map[string]string, more ...string) map[string]string {
		merged := map[string]string{}
		maps.Copy(merged, base)
		for i := 0; i < len(more); i += 2 {
			merged[more[i]] = more[i+1]
		}
		return merged
	}
	official := []string{"ACCESS_KEY_ID", "official", "ACCESS_KEY_SECRET", "s"}
	tools := []string{"ALIBABA_CLOUD_ACCESS_KEY_ID", "tools", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "s"}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte("[default]\naccess_key_id = file\naccess_key_secret = s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := Config{AccessKeyID: "config", AccessKeySecret: "s"}
	for name, test := range map[string]struct {
		variables  map[string]string
		flag       string
		config     Config
		wantID     string // none: an error
		wantSource string
	}{
		"role before all": {with(role, append(official, envFile, file)...), file, config, "", envRoleARN},
		"file by flag":    {with(nil, official...), file, config, "file", file},
		"file by variable, before keys": {
			with(nil, append(official, envFile, file)...), "", config, "file", file,
		},
		"official variables before others": {with(nil, append(official, tools...)...), "", config, "official", "ACCESS_KEY_ID"},
		"variables of the tools":           {with(nil, tools...), "", config, "tools", "ALIBABA_CLOUD_ACCESS_KEY_ID"},
		"cloud-config":                     {nil, "", config, "config", "Global.accessKeyID"},
		"role of the instance":             {nil, "", Config{}, "", SourceRole},
		"none at all":                      {with(nil, envRoleDisabled, "true"), "", Config{}, "", ""},
	} {
		provider, source := Credentials(CredentialsOptions{
			Environment: environmentOf(test.variables), Config: test.config, File: test.flag,
			Metadata: alicloud.NewMetadata("http://127.0.0.1:0"), Region: "cn-hangzhou",
		})
		keys, err := provider.Credentials(t.Context())
		var none *alicloud.CredentialsError
		if keys.AccessKeyID != test.wantID || (test.wantID == "") != errors.As(err, &none) || !strings.Contains(source, test.wantSource) {
			t.Errorf("%s: key %q from %q, error %v; want %q from %q", name, keys.AccessKeyID, source, err, test.wantID, test.wantSource)
		}
	}
}

func configText(id string, more string) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`{"Global": {"accessKeyID": %q, "accessKeySecret": %q, "region": "cn-hangzhou", "vpcid": "vpc-emulator", "vswitchid": "vsw-a"%s}}`,
		encode([]byte(id)), encode([]byte("s3cret-of-"+id)), more)
}

// TestCloudConfigIsReloaded changes the key in a mounted ConfigMap, breaks and empties the file, takes the key out, and puts one back.
func TestCloudConfigIsReloaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cloud-config.conf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(configText("first", ""))
	config, err := ReadConfigFile(path)
	if err != nil || config.Path != path {
		t.Fatalf("path %q, error %v", config.Path, err)
	}
	synctest.Test(t, func(t *testing.T) {
		provider, _ := Credentials(CredentialsOptions{Config: config, Metadata: alicloud.NewMetadata("http://127.0.0.1:0")})
		for _, step := range []struct{ text, want string }{
			{configText("first", ""), "first"},
			{configText("second", ""), "second"},
			{`{"Global": {"accessKeyID": "!"`, "second"},
			{configText("third", `, "clusterID": "a/b"`), "second"},
			{configText("third", `, "clusterID": "c2"`), "third"},
			// Emptied: the previous key stays in use, and the identity does not change.
			{"", "third"}, {"\n", "third"}, {"{}", "third"}, {`{"Other": {}}`, "third"}, {`{"Global": null}`, "third"},
			{`{"Global": {"region": "cn-hangzhou"}}`, ""}, // the RAM role takes over, and there is none
			{configText("fourth", ""), "fourth"},
		} {
			write(step.text)
			time.Sleep(time.Minute)
			keys, err := provider.Credentials(t.Context())
			if keys.AccessKeyID != step.want || (err == nil) != (step.want != "") {
				t.Errorf("after %s: key %q, error %v, want %q", strings.ReplaceAll(step.text, "s3cret", "…"), keys.AccessKeyID, err, step.want)
			}
		}
	})
}

// TestRotatedKeyCostsNoCall: the old key is deleted in the cloud before the kubelet brings the new one; the call that finds
// out is made again.
func TestRotatedKeyCostsNoCall(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	path := filepath.Join(t.TempDir(), "cloud-config.conf")
	encode := base64.StdEncoding.EncodeToString
	file := func(id, secret string) {
		t.Helper()
		text := fmt.Sprintf(`{"Global": {"accessKeyID": %q, "accessKeySecret": %q, "region": "cn-hangzhou", "vpcid": "vpc-emulator", "vswitchid": "vsw-a"}}`,
			encode([]byte(id)), encode([]byte(secret)))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file("deleted", "deleted-secret")
	config, err := ReadConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file("emulator", "emulator-secret")
	cloud := New(config, server.environment(""))
	if err := cloud.Connect(t.Context(), allowing(true)); err != nil {
		t.Errorf("with the new key in the file: %v", err)
	}
}

func TestConnectWaitsForSTS(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(unsignedToken(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL(), "http://")
	variables := map[string]string{
		"SLB_ENDPOINT": host, "NLB_ENDPOINT": host, "VPC_ENDPOINT": host, "ECS_ENDPOINT": host, "STS_ENDPOINT": host,
		"ALICLOUD_CLIENT_SCHEME": "HTTP",
		"METADATA_ENDPOINT":      "http://127.0.0.1:0", envTokenFile: token,
		envRoleARN: "acs:ram::1234567890123456:role/emulator-role", envProviderARN: "acs:ram::1234567890123456:oidc-provider/emulator",
	}
	server.Fault(`{"action":"AssumeRoleWithOIDC","code":"ServiceUnavailable","status":503}`)
	cloud := New(Config{Region: "cn-hangzhou", VPCID: "vpc-emulator", VSwitchIDs: []string{"vsw-a"}}, environmentOf(variables))
	if err := cloud.Connect(t.Context(), allowing(true)); err != nil {
		t.Fatalf("STS was down for one call: %v", err)
	}
	if err := os.WriteFile(token, []byte("no token"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := New(cloud.config, environmentOf(variables)).Connect(t.Context(), fake.NewClientset(kubeSystem()))
	if err == nil || !strings.Contains(err.Error(), envTokenFile) || !strings.Contains(err.Error(), "OIDCToken.Invalid") {
		t.Errorf("bad token: error %v, want one that names %s", err, envTokenFile)
	}
}
