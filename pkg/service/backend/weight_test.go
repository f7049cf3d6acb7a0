package backend_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestDrainEnds: what this program has set to 0 it raises again, also where weights of others stay. A 0 that somebody else has set stays.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	owner := mark.Owner{Service: types.NamespacedName{Namespace: "default", Name: "web"}, ClusterID: "c1"}
	for _, plain := range []string{owner.PortMark(30080), owner.NLBMark("30080", "TCP")} {
		drained, _ := mark.Drained(plain, 7)
		want := backend.Weight{Value: 100, Mark: plain}
		for _, test := range []struct {
			name          string
			have          backend.Weight
			drains, keeps bool
			next          backend.Weight
		}{
			{"a weight that differs", backend.Weight{Value: 7, Mark: plain}, false, false, want},
			{"a weight of somebody else", backend.Weight{Value: 7, Mark: plain}, false, true, backend.Weight{Value: 7, Mark: plain}},
			{"a 0 of somebody else", backend.Weight{Mark: plain}, false, true, backend.Weight{Mark: plain}},
			{"drains", backend.Weight{Value: 7, Mark: plain}, true, false, backend.Weight{Mark: drained}},
			{"drains with a weight of somebody else", backend.Weight{Value: 7, Mark: plain}, true, true, backend.Weight{Mark: drained}},
			{"goes on to drain", backend.Weight{Mark: drained}, true, true, backend.Weight{Mark: drained}},
			{"drained by the official CCM", backend.Weight{Mark: plain}, true, false, backend.Weight{Mark: plain}},
			{"drained no more", backend.Weight{Mark: drained}, false, false, want},
			{"drained no more, with a weight of somebody else", backend.Weight{Mark: drained}, false, true, backend.Weight{Value: 7, Mark: plain}},
			{"raised by somebody else while it drained", backend.Weight{Value: 9, Mark: drained}, false, true,
				backend.Weight{Value: 9, Mark: plain}},
			{"no place in the mark", backend.Weight{Mark: "shortened"}, false, true, backend.Weight{Value: 100, Mark: "shortened"}},
		} {
			want := backend.Weight{Value: 100, Mark: plain}
			if test.have.Mark == "shortened" {
				want.Mark = "shortened"
			}
			if next := test.have.Next(want, test.drains, test.keeps); next != test.next {
				t.Errorf("%s, %s: %+v becomes %+v, want %+v", plain, test.name, test.have, next, test.next)
			}
		}
	}
}
