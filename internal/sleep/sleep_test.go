package sleep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	t.Parallel()
	errCause := errors.New("the cause")
	for name, test := range map[string]struct {
		sleeps, ends time.Duration // ends is when the context ends
		want         error
		takes        time.Duration
	}{
		"to its end":                    {sleeps: time.Minute, ends: time.Hour, takes: time.Minute},
		"until the context ends":        {sleeps: time.Hour, ends: time.Minute, want: errCause, takes: time.Minute},
		"not at all":                    {sleeps: 0, ends: time.Minute},
		"not at all, after the context": {sleeps: -1, ends: 0, want: errCause},
		"after the context":             {sleeps: time.Hour, ends: 0, want: errCause},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				end := func() { cancel(errCause) }
				if test.ends == 0 {
					end()
				} else {
					defer time.AfterFunc(test.ends, end).Stop()
				}
				began := time.Now()
				if err := For(ctx, test.sleeps); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
					t.Errorf("error %v, want %v", err, test.want)
				}
				if took := time.Since(began); took != test.takes {
					t.Errorf("took %s, want %s", took, test.takes)
				}
				end()
			})
		})
	}
}
