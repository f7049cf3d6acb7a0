package driver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnread: what cannot be read is unread since the first of the reads that failed in a row.
func TestUnread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("throttled")
		var u Unread
		for _, step := range []struct {
			after           time.Duration
			err             error
			lasts, outlasts bool
		}{
			{0, nil, false, false},
			{0, failed, true, false},
			{9 * time.Minute, failed, true, false},
			{time.Minute, failed, true, true},
			{time.Minute, nil, false, false},
			{time.Hour, failed, true, false},
		} {
			time.Sleep(step.after)
			if u = u.After(step.err); u.Lasts() != step.lasts || u.Outlasts(10*time.Minute) != step.outlasts {
				t.Errorf("%v later, %v: lasts %v, outlasts %v", step.after, step.err, u.Lasts(), u.Outlasts(10*time.Minute))
			}
		}
	})
}
