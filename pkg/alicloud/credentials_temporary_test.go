package alicloud

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// keySource gives numbered keys that live for an hour.
type keySource struct {
	mu      sync.Mutex
	fetched int
	fail    error
	takes   time.Duration
}

func (s *keySource) fetch(ctx context.Context) (Credentials, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return Credentials{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched++
	if s.fail != nil {
		return Credentials{}, s.fail
	}
	id := "STS." + string(rune('0'+s.fetched))
	return Credentials{AccessKeyID: id, AccessKeySecret: "s3cret-" + id, SecurityToken: "t0ken", Expiration: time.Now().Add(time.Hour)}, nil
}

func (s *keySource) set(fail error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *keySource) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched
}

// recorded returns a context whose log lines go to lines.
func recorded(ctx context.Context) (recording context.Context, lines func() []string) {
	var mu sync.Mutex
	var all []string
	logger := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, prefix+args)
	}, funcr.Options{Verbosity: 10})
	return klog.NewContext(ctx, logger), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

// keyOf returns the id of the keys that serve now.
func keyOf(ctx context.Context, t *testing.T, provider CredentialsProvider) string {
	t.Helper()
	keys, err := provider.Credentials(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return keys.AccessKeyID
}

func TestTemporaryCredentialsAreRenewedBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &keySource{}
		provider := newTemporaryCredentials("test", source.fetch)
		ctx, cancel := context.WithCancel(t.Context())
		go KeepFresh(ctx, provider)
		first := keyOf(ctx, t, provider)
		time.Sleep(time.Hour - renewMargin - renewJitter - keepFreshEvery)
		if again := keyOf(ctx, t, provider); again != first || source.count() != 1 {
			t.Errorf("keys %s after %s, fetched %d times: renewed too early", again, first, source.count())
		}
		time.Sleep(renewJitter + 3*keepFreshEvery)
		if source.count() != 2 {
			t.Errorf("fetched %d times %s before the end, want 2 without any call", source.count(), renewMargin)
		}
		cancel()
		synctest.Wait()
	})
}

func TestTemporaryCredentialsAreFetchedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &keySource{takes: time.Second}
		provider := newTemporaryCredentials("test", source.fetch)
		ask := func(want int) {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if _, err := provider.Credentials(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if source.count() != want {
				t.Errorf("20 calls at once fetched %d times, want %d", source.count(), want)
			}
		}
		ask(1)
		time.Sleep(time.Hour - renewMargin) // due, and still good
		ask(2)
		time.Sleep(2 * time.Hour) // ended
		ask(3)
	})
}

func TestTemporaryCredentialsServeOnWhileTheirSourceFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := recorded(t.Context())
		source := &keySource{}
		provider := newTemporaryCredentials("test", source.fetch)
		first, err := provider.Credentials(ctx)
		if err != nil {
			t.Fatal(err)
		}
		source.set(&Error{Action: "AssumeRoleWithOIDC", Code: "Throttling.User", Status: 400})
		for time.Sleep(time.Hour - renewMargin); time.Until(first.Expiration) > time.Second; time.Sleep(time.Second) {
			if keys, err := provider.Credentials(ctx); err != nil || !keys.same(first) {
				t.Fatalf("%s before their end the keys do not serve: %v", time.Until(first.Expiration), err)
			}
		}
		if got, most := source.count(), int(renewMargin/renewRetry)+2; got > most {
			t.Errorf("the failing source was asked %d times, at most %d expected", got, most)
		}
		if got := lines(); len(got) != 1 || strings.Contains(got[0], "s3cret") || strings.Contains(got[0], "t0ken") {
			t.Errorf("log lines, want one without keys: %q", got)
		}
		time.Sleep(time.Minute)
		_, err = provider.Credentials(ctx)
		var none *CredentialsError
		if !errors.As(err, &none) || !none.IsTemporary() || IsThrottled(err) || IsAmbiguous(err) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("ended keys: error %v, want a temporary CredentialsError that is no answer to a call", err)
		}
		source.set(nil)
		if keys, err := provider.Credentials(ctx); err != nil || keys.same(first) {
			t.Errorf("after the source is back: %v", err)
		}
	})
}

func TestTemporaryCredentialsForcedRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &keySource{takes: time.Second}
		provider := newTemporaryCredentials("test", source.fetch)
		used, err := provider.Credentials(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if keys, err := provider.Refresh(t.Context(), used); err != nil || keys.same(used) {
					t.Errorf("no other keys: %v", err)
				}
			})
		}
		all.Wait()
		if source.count() != 2 {
			t.Errorf("10 refused calls fetched %d times, want 1", source.count()-1)
		}
	})
}

// TestTemporaryCredentialsCallerGivesUp: who gives up neither fails the others nor counts as a failure of the source.
func TestTemporaryCredentialsCallerGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &keySource{takes: time.Minute}
		provider := newTemporaryCredentials("test", source.fetch)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := provider.Credentials(impatient); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the deadline", err)
			}
		})
		all.Go(func() {
			if _, err := provider.Credentials(t.Context()); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
	})
}

// TestRoleCredentialsOutlastMetadataFailure uses keys that are about to end while the service is down.
func TestRoleCredentialsOutlastMetadataFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// Port 0 is never connected to: the dial fails at once, as a stopped service does.
		r := NewRoleCredentials(NewMetadata("http://127.0.0.1:0"))
		r.keys = Credentials{AccessKeyID: "STS.1", Expiration: time.Now().Add(time.Minute)}
		if keys, err := r.Credentials(t.Context()); err != nil || keys.AccessKeyID != "STS.1" {
			t.Errorf("keys that are still valid are not served: %v", err)
		}
		time.Sleep(time.Minute)
		var none *CredentialsError
		if _, err := r.Credentials(t.Context()); !errors.As(err, &none) || !none.IsTemporary() {
			t.Errorf("keys that have ended: %v, want a temporary CredentialsError", err)
		}
	})
}
