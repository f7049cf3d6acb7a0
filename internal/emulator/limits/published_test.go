package limits_test

import (
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/limits"
)

// TestPublished: actions that the pages of rates do not list have the rates of the others of their product.
func TestPublished(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		product string
		kind    api.Kind
		want    limits.Quota
	}{
		{"slb", api.Write, limits.Quota{Calls: 90, Window: time.Minute}},
		{"slb", api.Read, limits.Quota{Calls: 3000, Window: time.Minute}},
		{"nlb", api.Write, limits.Quota{Calls: 200, Window: time.Minute}},
		{"nlb", api.Read, limits.Quota{Calls: 20, Window: time.Second}},
		{"vpc", api.Write, limits.Quota{}},
		{"ecs", api.Read, limits.Quota{}},
	} {
		got, limited := limits.Published(test.product, "SomethingUnlisted", test.kind)
		if got != test.want || limited != (test.want != limits.Quota{}) {
			t.Errorf("%s, %v: %+v, %t, want %+v", test.product, test.kind, got, limited, test.want)
		}
	}
}
