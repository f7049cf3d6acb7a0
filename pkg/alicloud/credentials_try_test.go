package alicloud

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestChangedKeysAreTried: changed keys take the place of those in use once a call with them has succeeded, which is tried again from time
// to time; a refusal is reported once. Once the cloud refuses the keys in use, any others take their place.
func TestChangedKeysAreTried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		content := Credentials{AccessKeyID: "first"}
		var refused, tries map[string]int
		reports := 0
		provider := NewWatchedCredentials("a file", func() (Credentials, error) { return content, nil })
		provider.OnProblem(func(error) { reports++ })
		reset := func(id ...string) {
			refused, tries, reports = map[string]int{}, map[string]int{}, 0
			for _, key := range id {
				refused[key]++
			}
		}
		reset()
		want := func(what, id string, wantReports int) {
			t.Helper()
			got, err := provider.Credentials(ctx)
			if err != nil || got.AccessKeyID != id || reports != wantReports {
				t.Errorf("%s: key %q, error %v, %d reports; want %q and %d", what, got.AccessKeyID, err, reports, id, wantReports)
			}
		}
		want("first", "first", 0)
		provider.Try(func(_ context.Context, keys Credentials) error {
			tries[keys.AccessKeyID]++
			time.Sleep(time.Second)
			if refused[keys.AccessKeyID] > 0 {
				return errors.New("the cloud refuses the key, request " + time.Now().String())
			}
			return nil
		})
		change := func(id string) {
			content = Credentials{AccessKeyID: id}
			for range 6 { // as often as KeepFresh asks
				time.Sleep(keepFreshEvery)
				if _, err := provider.Credentials(ctx); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		change("good")
		want("good", "good", 0)
		if tries["good"] != 1 {
			t.Errorf("%d tries of good keys, want 1", tries["good"])
		}
		reset("bad")
		change("bad")
		want("refused", "good", 1)
		if n := tries["bad"]; n < 2 || n > 3 {
			t.Errorf("%d tries of refused keys in a minute, want 2 or 3", n)
		}
		delete(refused, "bad")
		change("bad")
		want("accepted later", "bad", 1)

		reset("worse")
		change("worse")
		change("bad")
		want("put back", "bad", 1)
		change("worse")
		want("again", "bad", 2)
		if got, err := provider.Refresh(ctx, Credentials{AccessKeyID: "bad"}); err != nil || got.AccessKeyID != "worse" {
			t.Errorf("key %q, error %v once the cloud refuses the keys in use, want the other ones", got.AccessKeyID, err)
		}
	})
}
