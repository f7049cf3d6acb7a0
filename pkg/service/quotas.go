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
	// quotaAgain is how soon they are read again once Services use another number of what the Quota Center counts: what it said of that is outdated.
	quotaAgain = 10 * time.Minute
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
	// nearly are the quotas that are nearly used up, with whether there was an event about it; shown are those that were shown.
	nearly map[quotaSubject]bool
	shown  map[quota.Code]bool
	// readAt is when the quotas were read.
	readAt time.Time
	// own is how much the Services were last seen to use of the quotas of the account, ownRead the same when those were read.
	own, ownRead map[quota.Code]int
}

// watch works until ctx is done. It closes started once the quotas were read, or could not be, and calls changed when other values count than before.
func (w *quotaWatch) watch(ctx context.Context, started chan<- struct{}, changed func()) {
	early := w.read(ctx)
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
		w.show()
		if time.Since(w.readAt) < w.pause() {
			continue
		}
		if w.read(ctx) {
			changed()
		}
		w.show()
	}
}

// read reads the quotas of the products. Everything works without them: a refusal is one line in the log, until it changes.
func (w *quotaWatch) read(ctx context.Context) (changed bool) {
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
	w.report(ctx, failure)
	w.retry = retryAfter(failure, w.retry)
	return changed
}

// pause returns how long nothing is read again.
func (w *quotaWatch) pause() time.Duration {
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
		w.holdGroups(found, engine.Product())
	}
	w.addUnused(found)
	maps.DeleteFunc(found, func(of quotaSubject, _ figure) bool { return of.code == "" }) // a product without quotas
	w.own = map[quota.Code]int{}
	for _, code := range quota.OfAccount() {
		w.own[code] = found[quotaSubject{code: code}].used
	}
	w.showAll(found)
}

// addAttachments adds how many times one instance is a backend. There is one figure for all instances: with each node that comes or goes, another one is it most often.
func (w *quotaWatch) addAttachments(found map[quotaSubject]figure, engine Engine) {
	w.crowds.mu.Lock()
	defer w.crowds.mu.Unlock()
	crowd := w.crowds.byEngine[engine]
	if crowd == nil {
		return
	}
	_, used := crowd.attached.most()
	product := engine.Product()
	id, firm := crowd.firm().most()
	found[quotaSubject{code: product.AttachmentQuota}] = figure{
		used: used, firm: firm, of: cmp.Or(id, "each instance"), on: found[quotaSubject{code: product.BalancerQuota}].on,
	}
}

// holdGroups has all listeners of a load balancer count if its group cannot open another one, because the account may have no more.
func (w *quotaWatch) holdGroups(found map[quotaSubject]figure, product Product) {
	account := w.withOthers(product.BalancerQuota, found[quotaSubject{code: product.BalancerQuota}])
	if account.used < w.opts.Config.Quotas.Limit(product.BalancerQuota).Bound(account.used) {
		return
	}
	for of, f := range found {
		if f.grows && of.code == product.ListenerQuota {
			f.firm, f.grows = f.used, false
			found[of] = f
		}
	}
}

// addUnused adds the quotas of the account that no Service uses, and of which the Quota Center shows what others use.
func (w *quotaWatch) addUnused(found map[quotaSubject]figure) {
	for _, code := range quota.OfAccount() {
		of := quotaSubject{code: code}
		_, counted := w.opts.Config.Quotas.Used(code)
		if _, used := found[of]; counted && !used {
			found[of] = figure{}
		}
	}
}

// showAll shows each quota with the one that uses most of it, and which ones are nearly used up.
func (w *quotaWatch) showAll(found map[quotaSubject]figure) {
	used, full, nearly := map[quota.Code]int{}, map[quota.Code]int{}, map[quotaSubject]bool{}
	for code := range w.shown { // the last one that used it may be gone
		used[code] = w.withOthers(code, figure{}).used
	}
	for of, f := range found {
		f = w.withOthers(of.code, f)
		used[of.code] = max(used[of.code], f.used)
		limit := w.opts.Config.Quotas.Limit(of.code)
		warned, before := w.nearly[of]
		if quota.Nearly(f.firm, limit.Bound(f.firm), before) {
			nearly[of] = warned || w.warn(of, f, limit)
			full[of.code]++
		}
	}
	for of := range w.nearly {
		if _, still := nearly[of]; !still {
			w.events.Resolve(of.subject(), problem.ReasonQuotaNearlyReached)
		}
	}
	w.nearly, w.shown = nearly, map[quota.Code]bool{}
	for code, n := range used {
		w.shown[code] = true
		quotaUsed.WithLabelValues(string(code)).Set(float64(n))
		quotaLimit.WithLabelValues(string(code)).Set(float64(w.opts.Config.Quotas.Limit(code).Value))
		quotaNearlyUsedUp.WithLabelValues(string(code)).Set(float64(min(full[code], 1)))
	}
}

// withOthers returns the figure with what others use of a quota of the account.
func (w *quotaWatch) withOthers(code quota.Code, f figure) figure {
	if used, known := w.opts.Config.Quotas.Used(code); known && code.OfAccount() {
		f.used, f.firm = max(f.used, used), max(f.firm, used)
	}
	return f
}

// warn emits the event. It reports whether there is a Service to show it with.
func (w *quotaWatch) warn(of quotaSubject, f figure, limit quota.Limit) bool {
	if f.on == nil {
		return false
	}
	w.events.Emit(of.subject(), events.Event{
		Object: f.on, Type: corev1.EventTypeWarning, Reason: problem.ReasonQuotaNearlyReached, Message: nearlyText(of.code, f, limit),
	})
	return true
}

func (s quotaSubject) subject() events.Subject {
	return events.Subject{Name: "quota " + string(s.code) + " " + s.id}
}

func nearlyText(code quota.Code, f figure, limit quota.Limit) string {
	of := cmp.Or(f.of, "the account")
	from, known, others := "", "", ""
	if limit.Source != quota.Configured {
		from = fmt.Sprintf(" (%s)", limit.Origin())
	}
	if limit.Abroad > 0 {
		known = "; if the account has more, allow quotas:ListProductQuotas, or set Global.quotas in the cloud-config"
	}
	switch {
	case f.grows:
		others = " by one Service of its group, which opens another load balancer for the others"
	case f.firm < f.used:
		others = ", not counting Services for which the manager chooses the nodes"
	}
	return fmt.Sprintf("%d of the %d%s of the quota %s of %s are used%s. Request a higher quota before it is used up: %s%s",
		f.firm, limit.Value, from, code, of, others, quota.ConsoleURL, known)
}
