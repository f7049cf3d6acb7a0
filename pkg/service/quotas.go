package service

import (
	"context"
	"maps"
	"time"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

const (
	// quotaPeriod is how often the quotas of the account are read. People raise them, and that takes hours.
	quotaPeriod = waits.QuotaRead
	// quotaRetry is how soon they are read again after that failed. The pause doubles with each failure, up to the hour.
	quotaRetry = time.Minute
	// usePeriod is how often what is used of them is summed up, without any call.
	usePeriod = time.Minute
	// quotaAgain is how soon they are read again once Services use another number of what the Quota Center counts: what it said of that is
	// outdated.
	quotaAgain = 10 * time.Minute
	// quotaStart is how long the first pass waits at most for the quotas of the account. Until they are read, published values count.
	quotaStart = waits.QuotasAtStart
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
	// nearly are the quotas that are nearly used up, with whether there was an event about it; shown are those that were shown.
	nearly map[quotaSubject]bool
	shown  map[quota.Code]bool
	// readAt is when the quotas were read.
	readAt time.Time
	// own is how much the Services were last seen to use of the quotas of the account, ownRead the same when those were read.
	own, ownRead map[quota.Code]int
}

// watchQuotas works until ctx is done. It closes started once the quotas were read, or could not be, and calls changed when other values
// count than before.
func (w *quotaWatch) watchQuotas(ctx context.Context, started chan<- struct{}, changed func()) {
	early := w.readQuotas(ctx)
	close(started)
	if early { // a pass may have begun with other values
		changed()
	}
	tick := time.NewTicker(usePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.showFigures()
		if time.Since(w.readAt) < w.pauseTime() {
			continue
		}
		if w.readQuotas(ctx) {
			changed()
		}
		w.showFigures()
	}
}

// readQuotas reads the quotas of the products. Everything works without them: a refusal is one line in the log, until it changes.
func (w *quotaWatch) readQuotas(ctx context.Context) (changed bool) {
	w.readAt, w.ownRead = time.Now(), w.own
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
	w.reportUnread(ctx, failure)
	w.retry = retryAfter(failure, w.retry)
	return changed
}

// pauseTime returns how long nothing is read again.
func (w *quotaWatch) pauseTime() time.Duration {
	if w.retry > 0 {
		return w.retry
	}
	for code, used := range w.own {
		if _, counted := w.opts.Config.Quotas.Used(code); counted && w.unread == "" && used != w.ownRead[code] {
			return quotaAgain
		}
	}
	return quotaPeriod
}

// retryAfter returns how soon to read again. A cloud that was throttling, or could not be reached, may answer soon; people who have to
// allow it need longer.
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

// reportUnread logs why the quotas cannot be read, once for each reason.
func (w *quotaWatch) reportUnread(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	reason := ""
	if err != nil {
		reason = failure.Signature(err)
	}
	if reason != "" && reason != w.unread {
		klog.FromContext(ctx).Info("Cannot read the Quota Center; using the quotas of the cloud-config, and the published ones. This read is optional: "+
			"allow quotas:ListProductQuotas, or set Global.disableQuotaCenter", "reason", err.Error())
	}
	w.unread = reason
}
