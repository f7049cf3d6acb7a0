package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestQuotasOnThePage: docs/explanation/scale.md lists every quota that the cloud-config accepts, with its published value.
func TestQuotasOnThePage(t *testing.T) {
	t.Parallel()
	values := map[string]string{}
	for line := range strings.Lines(pages(t)["docs/explanation/scale.md"]) {
		if cells := strings.Split(line, "|"); len(cells) > 4 {
			values[strings.TrimSpace(cells[3])] = strings.ReplaceAll(strings.TrimSpace(cells[2]), ",", "")
		}
	}
	for _, code := range quota.Codes() {
		limit := (*quota.Book)(nil).Limit(quota.Code(code))
		want := fmt.Sprint(limit.Value)
		if limit.Abroad > 0 {
			want = fmt.Sprintf("%d (%d on the international site)", limit.Value, limit.Abroad)
		}
		if got := values["`"+code+"`"]; got != want {
			t.Errorf("%s: the page has %q, want %q", code, got, want)
		}
	}
}
