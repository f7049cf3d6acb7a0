package mark_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

func TestOwner(t *testing.T) {
	t.Parallel()
	us := mark.Owner{Service: types.NamespacedName{Namespace: "default", Name: "web"}, ClusterID: "c1"}
	for _, test := range []struct {
		text        string
		ours, other bool
	}{
		{"k8s/80/web/default/c1", true, false},
		{"k8s/80/web/default/c2", false, true},
		{"k8s/80/web/prod/c1", false, true},
		{"k8s/http/web/default/c1", true, false},
		{"k8s/80/web/default", false, false},
		{"k8s/80/web/default/c1/x", false, false},
		{"by hand", false, false},
		{"", false, false},
	} {
		if got := us.Owns(test.text); got != test.ours {
			t.Errorf("Owns(%q) = %v", test.text, got)
		}
		if got := us.OwnedByOther(test.text); got != test.other {
			t.Errorf("OwnedByOther(%q) = %v", test.text, got)
		}
	}
}

// TestMaker: people know Services by their names, not by marks.
func TestMaker(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"k8s/80/web/shop/c1":     "Service shop/web",
		"k8s/80/web/shop/c2":     "Service shop/web of cluster c2",
		"k8s.80.TCP.web.shop.c1": "Service shop/web",
		"by hand":                `an unknown owner, with the description "by hand"`,
		"":                       "an unknown owner, without a description",
	} {
		if got := mark.Maker(text, "c1"); got != want {
			t.Errorf("%q was made by %s, want %s", text, got, want)
		}
	}
}
