package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestQuotasOnThePage: docs/explanation/scale.md lists every quota that the cloud-config accepts, with its published value, and states for
// each limit how far an account goes with it. pkg/service/backend computes the figures of that table.
func TestQuotasOnThePage(t *testing.T) {
	t.Parallel()
	values := map[string]string{}
	page := pages(t)["docs/explanation/scale.md"]
	_, far, _ := strings.Cut(page, "<!-- generated:how-far -->")
	_, limits, _ := strings.Cut(page, "\n| --- |")
	limits, _, _ = strings.Cut(limits, "\n\n")
	for row := range strings.SplitSeq(limits, "\n| ") {
		limit, _, _ := strings.Cut(row, " |")
		limit, _, _ = strings.Cut(limit, ", ")
		if !strings.HasPrefix(row, " ---") && !strings.Contains(far, "\n| "+limit+" | ") {
			t.Errorf("the page does not say how far an account goes with the limit %q", limit)
		}
	}
	for line := range strings.Lines(page) {
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
