package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

const (
	// quotaPeriod is how often the quotas of the account are read. People raise them, and that takes hours.
	quotaPeriod = time.Hour
	// quotaRetry is how soon they are read again after that failed. The pause doubles with each failure, up to the hour.
	quotaRetry = time.Minute
	// usePeriod is how often what is used of them is summed up, without any call.
	usePeriod = time.Minute
	// quotaStart is how long the first pass waits at most for the quotas of the account. Until they are read, published values count.
	quotaStart = 3 * time.Second
)

// QuotaReader reads the quotas that the account has of a product.
type QuotaReader interface {
	ListProductQuotas(ctx context.Context, productCode string) ([]alicloud.ProductQuota, error)
}

// quotaWatch reads the quotas of the account, and says how much of them is used.
type quotaWatch struct {
	*Reconciler
	// unread is why the quotas could not be read the last time, empty when they were.
	unread string
	// retry is how soon they are read again after that failed, 0 for no sooner than otherwise.
	retry time.Duration
	// nearly are the quotas that are nearly used up.
	nearly map[quota.Code]bool
}

// watch works until ctx is done. It closes started once the quotas were read, or could not be, and calls changed when other values count than before.
func (w *quotaWatch) watch(ctx context.Context, started chan<- struct{}, changed func()) {
	early := w.read(ctx)
	close(started)
	if early { // a pass may have begun with other values
		changed()
	}
	readAt := time.Now()
	tick := time.NewTicker(usePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(readAt) >= cmp.Or(w.retry, quotaPeriod) {
			readAt = time.Now()
			if w.read(ctx) {
				changed()
			}
		}
		w.show()
	}
}

// read reads the quotas of the products. Everything works without them: a refusal is one line in the log, until it changes.
func (w *quotaWatch) read(ctx context.Context) (changed bool) {
	if w.opts.Quotas == nil || w.opts.Config.Quotas == nil {
		return false
	}
	found := map[quota.Code]quota.Reading{}
	var failure error
	for _, product := range w.quotaProducts() {
		quotas, err := w.opts.Quotas.ListProductQuotas(ctx, product)
		if err != nil {
			failure = err
			break // the others would fail as well
		}
		maps.Copy(found, QuotaReadings(quotas))
	}
	changed = w.opts.Config.Quotas.Read(found)
	w.report(ctx, failure)
	w.retry = retryAfter(failure, w.retry)
	return changed
}

// retryAfter returns how soon to read again. A cloud that was throttling, or could not be reached, may answer soon; people who have to allow it need longer.
func retryAfter(failure error, before time.Duration) time.Duration {
	switch {
	case failure == nil || alicloud.IsForbidden(failure):
		return 0
	case before == 0:
		return quotaRetry
	}
	return min(before+before, quotaPeriod)
}

// QuotaReadings returns what the Quota Center shows by the codes of the quotas.
func QuotaReadings(of []alicloud.ProductQuota) map[quota.Code]quota.Reading {
	found := map[quota.Code]quota.Reading{}
	for _, q := range of {
		found[quota.Code(q.Code)] = quota.Reading{Value: q.Total, Used: q.Used}
	}
	return found
}

// quotaProducts are those of which the manager counts something. The route tables are of the VPC.
func (w *quotaWatch) quotaProducts() []string {
	var products []string
	for _, engine := range w.opts.Engines {
		if name := engine.Product().QuotaProduct; name != "" {
			products = append(products, name)
		}
	}
	return append(products, alicloud.QuotasOfVPC)
}

// report logs why the quotas cannot be read, once for each reason.
func (w *quotaWatch) report(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	reason := ""
	if err != nil {
		reason = signature(err)
	}
	if reason != "" && reason != w.unread {
		klog.FromContext(ctx).Info("Cannot read the Quota Center; using the quotas of the cloud-config, and the published ones. This read is optional: "+
			"allow quotas:ListProductQuotas, or set Global.disableQuotaCenter", "reason", err.Error())
	}
	w.unread = reason
}

// show sets the metrics, and emits an event for each quota that came to be nearly used up.
func (w *quotaWatch) show() {
	found := w.uses.figures()
	for _, engine := range w.opts.Engines {
		w.addAttachments(found, engine)
	}
	delete(found, "") // a product without quotas
	for code, f := range found {
		w.showOne(code, f)
	}
}

// addAttachments adds how many times one instance is a backend. The manager keeps within that quota wherever it may choose the nodes.
func (w *quotaWatch) addAttachments(found map[quota.Code]figure, engine Engine) {
	w.crowds.mu.Lock()
	defer w.crowds.mu.Unlock()
	crowd := w.crowds.byEngine[engine]
	if crowd == nil {
		return
	}
	id, times := crowd.attached.most()
	chooses := len(crowd.counted.bySelector) > 0 && w.opts.Config.BackendSubset != backend.SubsetOff
	found[engine.Product().AttachmentQuota] = figure{used: times, of: id, kept: chooses, on: found[engine.Product().BalancerQuota].on}
}

func (w *quotaWatch) showOne(code quota.Code, f figure) {
	limit := w.opts.Config.Quotas.Limit(code)
	if used, known := w.opts.Config.Quotas.Used(code); known && code.OfAccount() {
		f.used = max(f.used, used) // others of the account use it, too
	}
	if w.nearly == nil {
		w.nearly = map[quota.Code]bool{}
	}
	before := w.nearly[code]
	nearly := !f.kept && quota.Nearly(f.used, limit.Bound(f.used), before)
	w.nearly[code] = nearly
	quotaUsed.WithLabelValues(string(code)).Set(float64(f.used))
	quotaLimit.WithLabelValues(string(code)).Set(float64(limit.Value))
	quotaNearlyUsedUp.WithLabelValues(string(code)).Set(map[bool]float64{true: 1}[nearly])
	about := events.Subject{Name: "quota " + string(code)}
	switch {
	case !nearly:
		w.events.Resolve(about, problem.ReasonQuotaNearlyReached)
	case !before && f.on != nil:
		w.events.Emit(about, events.Event{Object: f.on, Type: corev1.EventTypeWarning, Reason: problem.ReasonQuotaNearlyReached, Message: nearlyText(code, f, limit)})
	}
}

func nearlyText(code quota.Code, f figure, limit quota.Limit) string {
	of := "the account"
	if f.of != "" {
		of = f.of
	}
	from, known := "", ""
	if limit.Source != quota.Configured {
		from = fmt.Sprintf(" (%s)", limit.Origin())
	}
	if limit.Abroad > 0 {
		known = "; if the account has more, allow quotas:ListProductQuotas, or set Global.quotas in the cloud-config"
	}
	return fmt.Sprintf("%d of the %d%s of the quota %s of %s are used. Request a higher quota before it is used up: %s%s", f.used, limit.Value, from, code, of, quota.ConsoleURL, known)
}
