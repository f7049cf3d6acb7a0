package backend

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		have   []int
		weight int
		want   []int
	}{
		{"even", []int{100, 100, 100}, 60, []int{20, 20, 20}},
		{"by endpoints", []int{1, 3}, 100, []int{25, 75}},
		{"at least one", []int{1, 99}, 10, []int{1, 9}},
		{"none", []int{1, 3}, 0, []int{0, 0}},
		{"backend servers without weight", []int{0, 0}, 10, []int{5, 5}},
		{"nobody", nil, 10, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var backends []Backend
			for _, weight := range test.have {
				backends = append(backends, Backend{Weight: weight})
			}
			Divide(backends, test.weight, func(b *Backend) *int { return &b.Weight })
			var got []int
			for _, b := range backends {
				got = append(got, b.Weight)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}
