package service

import (
	"cmp"
	"maps"

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
func (w *quotaWatch) addAttachments(found map[quotaSubject]figure, engine Engine) {
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
func (w *quotaWatch) holdGroups(found map[quotaSubject]figure, product Product) {
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
