package alicloud

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// tryTimeout bounds trying changed keys; with the pace at which they are noticed, a mistake is reported within half a minute.
	tryTimeout = 15 * time.Second
	// tryAgain is after what time keys are tried again that were refused: a new key takes a while to be known everywhere.
	tryAgain = 30 * time.Second
)

// rereadAfter is how long what was read counts as current. The kubelet takes up to a minute to bring a changed Secret into
// a pod; some seconds more go unnoticed, and a file is not read for each call.
const rereadAfter = 5 * time.Second

// WatchedCredentials are keys in a file that may change at any time. Their content is compared, not the file's time or
// inode, so that the swapped links of mounted ConfigMaps and Secrets act like any other edit. While the content is bad, or the
// cloud refuses the keys in it, the previous credentials stay in use. It is safe for concurrent use.
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
	try       func(context.Context, Credentials) error
	// next are changed keys that are not in use yet, because they are being tried or were refused at triedAt.
	next          Credentials
	trying, tried bool
	triedAt       time.Time
	refused       error // why next is not used, once it was tried
}

var _ Refresher = (*WatchedCredentials)(nil)

// NewWatchedCredentials returns keys that read reads; source names them in errors. The errors of read must not hold keys.
func NewWatchedCredentials(source string, read func() (Credentials, error)) *WatchedCredentials {
	return &WatchedCredentials{source: source, read: read}
}

// OnProblem calls report with each kind of bad content once, while the previous credentials stay in use; at once where there is
// one. report must not wait, and the error holds no key.
func (w *WatchedCredentials) OnProblem(report func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onProblem = report
	if w.good && w.problem != nil {
		report(w.badContent())
	}
}

// Try has changed keys tried before they take the place of those in use: an error of try says why they cannot be used. Once the cloud
// refuses the keys in use, any others take their place.
func (w *WatchedCredentials) Try(try func(ctx context.Context, keys Credentials) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.try = try
}

func (w *WatchedCredentials) badContent() error {
	return &CredentialsError{Source: w.source, err: w.problem}
}

// Credentials implements [CredentialsProvider].
func (w *WatchedCredentials) Credentials(ctx context.Context) (Credentials, error) {
	return w.current(ctx, rereadAfter)
}

// Refresh implements [Refresher].
func (w *WatchedCredentials) Refresh(ctx context.Context, used Credentials) (Credentials, error) {
	keys, err := w.current(ctx, 0)
	if err != nil || !used.same(keys) {
		return keys, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != (Credentials{}) && used.same(w.keys) {
		w.adopt(ctx, w.next)
	}
	return w.keys, nil
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
	changed := !w.good || !keys.same(w.keys)
	switch {
	case err != nil:
		w.unusable(ctx, err)
	case changed && w.good && w.try != nil && keys.AccessKeyID != "":
		w.consider(ctx, keys)
	case changed:
		w.adopt(ctx, keys)
	default:
		if w.reported != "" {
			klog.FromContext(ctx).Info("Credentials can be read again", "source", w.source)
		}
		w.reported, w.next, w.tried = "", Credentials{}, false
	}
}

// unusable reports content that gives no keys, while earlier ones stay in use. Without those, the caller gets the error.
func (w *WatchedCredentials) unusable(ctx context.Context, err error) {
	if !w.good || err.Error() == w.reported {
		return
	}
	w.reported = err.Error()
	observeCredentials(w.source, err)
	klog.FromContext(ctx).Error(err, "Changed credentials cannot be used; the previous credentials stay in use", "source", w.source)
	if w.onProblem != nil {
		w.onProblem(w.badContent())
	}
}

// adopt has the keys used from now on.
func (w *WatchedCredentials) adopt(ctx context.Context, keys Credentials) {
	if w.good {
		klog.FromContext(ctx).Info("Credentials have changed and are in use", "source", w.source)
	}
	observeCredentials(w.source, nil)
	w.keys, w.good, w.problem, w.reported, w.next, w.tried = keys, true, nil, "", Credentials{}, false
}

// consider has changed keys tried, while the present ones stay in use.
func (w *WatchedCredentials) consider(ctx context.Context, keys Credentials) {
	if !keys.same(w.next) {
		w.next, w.tried = keys, false
	}
	if w.tried {
		w.problem = w.refused
	}
	if w.trying || w.tried && time.Since(w.triedAt) < tryAgain {
		return
	}
	w.trying = true
	go w.attempt(context.WithoutCancel(ctx), w.next)
}

func (w *WatchedCredentials) attempt(ctx context.Context, keys Credentials) {
	limited, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	err := w.try(limited, keys)
	w.mu.Lock()
	defer w.mu.Unlock()
	again := w.tried
	w.trying, w.tried, w.triedAt = false, true, time.Now()
	switch {
	case !keys.same(w.next): // they changed again, or are in use already
		w.tried = false
	case err == nil:
		w.adopt(ctx, keys)
	case again:
		w.refused = err
	default: // once for these keys: the text of a refusal differs each time
		w.refused, w.problem, w.reported = err, err, err.Error()
		observeCredentials(w.source, err)
		klog.FromContext(ctx).Error(err, "Changed credentials cannot be used; the previous credentials stay in use", "source", w.source)
		if w.onProblem != nil {
			w.onProblem(w.badContent())
		}
	}
}
