package service

import (
	"cmp"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// showFigures sets the metrics, and emits an event for each quota that came to be nearly used up.
func (w *quotaWatch) showFigures() {
	found := w.uses.quotaFigures()
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

// addAttachments adds how many times one instance is a backend: the one that uses the largest share of its quota. There is one figure for
// all instances: with each node that comes or goes, another one is it most often.
func (w *quotaWatch) addAttachments(found map[quotaSubject]figure, engine driver.Engine) {
	w.use.mu.Lock()
	defer w.use.mu.Unlock()
	use := w.use.byEngine[engine]
	if use == nil {
		return
	}
	product := engine.Product()
	limit := w.opts.Config.Quotas.Limit(product.AttachmentQuota)
	most := func(of *instanceCounts) (id string, times int) {
		id, times = of.mostUsed()
		if limit.Exceeded(times) { // what Services have chosen proves nothing before the cloud has accepted it
			times = max(limit.Value, min(times, use.maxObserved()))
		}
		return cmp.Or(id, "each instance"), times
	}
	by, used := most(&use.taken)
	of, firm := most(use.firmCounts())
	found[quotaSubject{code: product.AttachmentQuota}] = figure{
		used: used, by: by, firm: firm, of: of, on: found[quotaSubject{code: product.BalancerQuota}].on,
	}
}

// holdGroups has all listeners of a load balancer count if its group cannot open another one, because the account may have no more.
func (w *quotaWatch) holdGroups(found map[quotaSubject]figure, product driver.Product) {
	account := w.withOthers(product.BalancerQuota, found[quotaSubject{code: product.BalancerQuota}])
	limit := w.opts.Config.Quotas.Limit(product.BalancerQuota)
	if account.used < limit.Bound(account.used) || limit.Exceeded(account.used) {
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

// shownUse is what the metrics show of a quota. A limit of 0 is not known.
type shownUse struct{ used, limit int }

// showsBefore reports whether to show this one rather than the other: where the limit is known, the larger share of it.
func (u shownUse) showsBefore(other shownUse) bool {
	switch {
	case u.limit > 0 && other.limit > 0:
		return u.used*other.limit > other.used*u.limit
	case u.limit == other.limit:
		return u.used > other.used
	}
	return u.limit > 0
}

// showAll shows each quota with the one that uses the largest share of it, and which ones are nearly used up.
func (w *quotaWatch) showAll(found map[quotaSubject]figure) {
	uses, full, nearly, most := map[quota.Code]shownUse{}, map[quota.Code]int{}, map[quotaSubject]bool{}, map[quota.Code]int{}
	for code := range w.shown { // the last one that used it may be gone
		most[code] = w.withOthers(code, figure{}).used
	}
	for of, f := range found {
		most[of.code] = max(most[of.code], w.withOthers(of.code, f).used)
	}
	for code, used := range most {
		if w.opts.Config.Quotas.Limit(code).Exceeded(used) {
			uses[code] = shownUse{used: used}
		} else {
			uses[code] = shownUse{w.withOthers(code, figure{}).used, w.boundOf(code, "", most)}
		}
	}
	for of, f := range found {
		f = w.withOthers(of.code, f)
		if use := (shownUse{f.used, w.boundOf(of.code, cmp.Or(f.by, f.of), most)}); use.showsBefore(uses[of.code]) {
			uses[of.code] = use
		}
		bound := w.boundOf(of.code, f.of, most)
		warned, before := w.nearly[of]
		if quota.Nearly(f.firm, bound, before) {
			nearly[of] = warned || w.warnUser(of, f)
			full[of.code]++
		}
	}
	for of := range w.nearly {
		if _, still := nearly[of]; !still {
			w.events.Resolve(of.eventSubject(), problem.ReasonQuotaNearlyReached)
		}
	}
	w.nearly, w.shown = nearly, map[quota.Code]bool{}
	for code, use := range uses {
		w.shown[code] = true
		quotaUsed.WithLabelValues(string(code)).Set(float64(use.used))
		showLimit(quotaLimit, map[string]string{"quota": string(code)}, use.limit)
		quotaNearlyUsedUp.WithLabelValues(string(code)).Set(float64(min(full[code], 1)))
	}
}

// showLimit shows a limit. One that is not known has no value: any number would be taken for the limit, and the use for a share of it.
func showLimit(gauge *metrics.GaugeVec, labels map[string]string, limit int) {
	if limit == 0 {
		gauge.Delete(labels)
		return
	}
	gauge.With(labels).Set(float64(limit))
}

// boundOf returns the value of a quota for a load balancer, an instance, or the account, 0 for one that is not known. A value that is only
// assumed is too low for all of them if one has more: most is how much that one uses which uses the most. What the cloud has refused is the
// limit of the one to which it has.
func (w *quotaWatch) boundOf(code quota.Code, id string, most map[quota.Code]int) int {
	limit := w.opts.Config.Quotas.Of(code, id)
	if limit.Source != quota.Refusal && limit.Exceeded(most[code]) {
		return 0
	}
	return limit.Bound(most[code])
}

// withOthers returns the figure with what others use of a quota of the account.
func (w *quotaWatch) withOthers(code quota.Code, f figure) figure {
	if used, known := w.opts.Config.Quotas.Used(code); known && code.OfAccount() {
		f.used, f.firm = max(f.used, used), max(f.firm, used)
	}
	return f
}

// warnUser emits the event. It reports whether there is a Service to show it with.
func (w *quotaWatch) warnUser(of quotaSubject, f figure) bool {
	if f.on == nil {
		return false
	}
	w.events.Emit(of.eventSubject(), events.Event{
		Object: f.on, Type: corev1.EventTypeWarning, Reason: problem.ReasonQuotaNearlyReached,
		Message: nearlyText(of.code, f, w.opts.Config.Quotas.Of(of.code, f.of)),
	})
	return true
}

func (s quotaSubject) eventSubject() events.Subject {
	return events.Subject{Name: "quota " + string(s.code) + " " + s.id}
}

func nearlyText(code quota.Code, f figure, limit quota.Limit) string {
	by, others, when, known := "", "", " before it is used up", ""
	if f.of != "" {
		by = " by " + f.of
	}
	switch {
	case f.grows:
		others = " for one Service of its group, which opens another load balancer for the others"
	case f.firm < f.used:
		others = ", not counting Services for which the manager chooses the nodes"
	}
	bound := limit.Bound(f.firm)
	if f.firm >= bound {
		when = ""
	}
	if advice := limit.Advice(); advice != "" {
		known = "; if the account has more, " + advice
	}
	return fmt.Sprintf("%d of the %d %s are used%s%s (quota %s; value: %s). Request a higher quota%s: %s%s",
		f.firm, bound, code.Words(), by, others, code, limit.Origin(f.firm), when, alicloud.QuotaConsole, known)
}
