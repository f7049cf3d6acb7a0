package alicloud

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// rereadAfter is how long what was read counts as current. The kubelet takes up to a minute to bring a changed Secret into
// a pod; some seconds more go unnoticed, and a file is not read for each call.
const rereadAfter = 5 * time.Second

// WatchedCredentials are keys in a file that may change at any time. Their content is compared, not the file's time or
// inode, so that the swapped links of mounted ConfigMaps and Secrets act like any other edit. While the content is bad, the
// last good keys serve on. It is safe for concurrent use.
type WatchedCredentials struct {
	source string
	read   func() (Credentials, error)

	mu        sync.Mutex // guards what follows
	keys      Credentials
	good      bool // keys were read
	readAt    time.Time
	problem   error  // of the last read
	reported  string // the kind of bad content that was reported last
	onProblem func(error)
}

var _ Refresher = (*WatchedCredentials)(nil)

// NewWatchedCredentials returns keys that read reads; source names them in errors. The errors of read must not hold keys.
func NewWatchedCredentials(source string, read func() (Credentials, error)) *WatchedCredentials {
	return &WatchedCredentials{source: source, read: read}
}

// OnProblem calls report with each kind of bad content once, while the last good keys serve on; at once where there is
// one. report must not wait, and the error holds no key.
func (w *WatchedCredentials) OnProblem(report func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onProblem = report
	if w.good && w.problem != nil {
		report(w.badContent())
	}
}

func (w *WatchedCredentials) badContent() error {
	return &CredentialsError{Source: w.source, err: w.problem}
}

// Credentials implements [CredentialsProvider].
func (w *WatchedCredentials) Credentials(ctx context.Context) (Credentials, error) {
	return w.current(ctx, rereadAfter)
}

// Refresh implements [Refresher].
func (w *WatchedCredentials) Refresh(ctx context.Context, _ Credentials) (Credentials, error) {
	return w.current(ctx, 0)
}

func (w *WatchedCredentials) current(ctx context.Context, maxAge time.Duration) (Credentials, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readAt.IsZero() || time.Since(w.readAt) >= maxAge {
		w.reread(ctx)
	}
	if !w.good {
		return Credentials{}, w.badContent()
	}
	return w.keys, nil
}

// reread reports each change once: to good keys, and to each kind of bad content.
func (w *WatchedCredentials) reread(ctx context.Context) {
	keys, err := w.read()
	w.readAt, w.problem = time.Now(), err
	logger := klog.FromContext(ctx)
	switch {
	case err != nil && !w.good: // the caller gets the error
	case err != nil && err.Error() != w.reported:
		w.reported = err.Error()
		observeCredentials(w.source, err)
		logger.Error(err, "Changed credentials cannot be used; the last good ones serve on", "source", w.source)
		if w.onProblem != nil {
			w.onProblem(w.badContent())
		}
	case err == nil && (!w.good || !keys.same(w.keys)):
		if w.good {
			logger.Info("Credentials have changed and are in use", "source", w.source)
		}
		observeCredentials(w.source, nil)
		w.keys, w.good, w.reported = keys, true, ""
	case err == nil && w.reported != "":
		logger.Info("Credentials can be read again", "source", w.source)
		w.reported = ""
	}
}
