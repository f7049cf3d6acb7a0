package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/journal"
)

func TestLast(t *testing.T) {
	t.Parallel()
	j := journal.New(3, nil)
	last := func(n int) []int64 {
		seqs := []int64{}
		for _, c := range j.Last(n) {
			seqs = append(seqs, c.Seq)
		}
		return seqs
	}
	steps := []struct {
		calls, n int
		want     []int64
	}{
		{0, 2, []int64{}},
		{2, 5, []int64{2, 1}},
		{2, 2, []int64{4, 3}},
		{1, 5, []int64{5, 4, 3}},
	}
	for _, s := range steps {
		for range s.calls {
			if err := j.Add(journal.Call{}); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(s.want, last(s.n)); d != "" {
			t.Errorf("the last %d (-want +got):\n%s", s.n, d)
		}
	}
}
