package provider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
)

// TestDoctorComparesAccounts: in a VPC that accounts share, a key of another account passes all other checks and sees nothing of the
// cluster.
func TestDoctorComparesAccounts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		owner string
		want  doctor.Status
	}{
		"the same account": {"1234567890123456", doctor.OK},
		"another account":  {"2345678901234567", doctor.Wrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/owner-account-id"):
					_, _ = io.WriteString(w, test.owner)
				case strings.HasSuffix(r.URL.Path, "/token"):
					_, _ = io.WriteString(w, "token")
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(metadata.Close)
			p := newPatient(t)
			p.env.Endpoints["metadata"] = metadata.URL
			report := p.examine(t)
			at := slices.IndexFunc(report.Checks, func(c doctor.Check) bool { return c.Subject == "account" })
			if at < 0 || report.Checks[at].Status != test.want || !strings.Contains(report.Checks[at].Detail, test.owner) {
				t.Errorf("want %v of account %s in:\n%s", test.want, test.owner, report)
			}
		})
	}
}
