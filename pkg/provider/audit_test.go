package provider

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestAuditLogShowsTheCluster: the cloud's audit log has the name of the session and the user agent of each call. Both name the cluster, so
// that it shows which of the clusters with the same role, or the same key, has done what.
func TestAuditLogShowsTheCluster(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	testkit.Check(t, os.WriteFile(token, []byte(unsignedToken(t)), 0o600))
	role := map[string]string{
		envTokenFile: token, envRoleARN: "acs:ram::1234567890123456:role/emulator-role",
		envProviderARN: "acs:ram::1234567890123456:oidc-provider/emulator",
	}
	for name, test := range map[string]struct {
		variables        map[string]string
		clusterID        string
		session, cluster string
	}{
		"derived":    {nil, "", "ccm-c0f2c3d4e0000400080000000000", "cluster/c0f2c3d4e00004000800000000000abcd"},
		"configured": {nil, "team/a, ü\n", "ccm-team-a----", "cluster/team-a----"},
		"named":      {map[string]string{envSessionName: "mine"}, "c1", "mine", "cluster/c1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := emulatortest.New(t, emulator.Options{})
			var mu sync.Mutex
			var agents []string
			listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				agents = append(agents, r.UserAgent())
				mu.Unlock()
				server.Handler().ServeHTTP(w, r)
			}))
			t.Cleanup(listening.Close)
			variables := map[string]string{"VPC_ENDPOINT": listening.URL, "STS_ENDPOINT": server.URL(), "ALICLOUD_CLIENT_SCHEME": "HTTP"}
			maps.Copy(variables, role)
			maps.Copy(variables, test.variables)
			config := Config{Region: "cn-hangzhou", VPCID: "vpc-emulator", ClusterID: test.clusterID}
			testkit.Check(t, New(config, environmentOf(variables)).Connect(t.Context(), allowing(true)))

			calls := server.Calls(0)
			if got := calls[0].Parameters["RoleSessionName"]; calls[0].Action != "AssumeRoleWithOIDC" || got != test.session {
				t.Errorf("%s with session %q, want %q", calls[0].Action, got, test.session)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, agent := range agents {
				if !strings.HasSuffix(agent, clientName+" "+test.cluster) {
					t.Errorf("user agent %q, want one that ends in %q", agent, test.cluster)
				}
			}
			if len(agents) == 0 {
				t.Error("no call")
			}
		})
	}
}

// TestPlainHTTPIsReported: calls that everybody on the way can read are for tests only, and nobody sets that without a hint.
func TestPlainHTTPIsReported(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	if report := p.examine(t).String(); !strings.Contains(report, "plain HTTP") || !strings.Contains(report, envScheme) {
		t.Errorf("doctor does not report it:\n%s", report)
	}
	p.env.PlainHTTP = false
	if report := p.examine(t).String(); strings.Contains(report, "plain HTTP") {
		t.Errorf("doctor reports it for calls over HTTPS:\n%s", report)
	}
}
