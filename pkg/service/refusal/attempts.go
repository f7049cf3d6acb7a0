package refusal

import "time"

// Attempts are steps on load balancers that the cloud refused for what they ask for, by all that they were to do: one that is to do
// something else is another one. Each is tried again at growing intervals, see [Lasting], and at once after an edit. The zero value is
// empty; several goroutines may use it.
type Attempts struct{ refused Refusals[attempt] }

type attempt struct{ loadBalancerID, wanted string }

// Err returns why the cloud refused the same step, while it is not tried again. The id is empty before there is a load balancer.
func (a *Attempts) Err(loadBalancerID, wanted string) error {
	return a.refused.Err(attempt{loadBalancerID, wanted}, time.Now())
}

// Refused reports whether the cloud refused the same step the last time that it was tried.
func (a *Attempts) Refused(loadBalancerID, wanted string) bool {
	return a.refused.Has(attempt{loadBalancerID, wanted})
}

// Refuse notes that the cloud refused a step, for as long as nobody changes anything.
func (a *Attempts) Refuse(loadBalancerID, wanted string, err error) {
	a.refused.Add(attempt{loadBalancerID, wanted}, err, Lasting, time.Now())
}

// Accept notes that the cloud carried a step out.
func (a *Attempts) Accept(loadBalancerID, wanted string) {
	a.refused.Drop(attempt{loadBalancerID, wanted})
}

// TryAgain forgets what the cloud refused on a load balancer: somebody has edited a Service, and expects to see what comes of it.
func (a *Attempts) TryAgain(loadBalancerID string) {
	a.refused.DropFunc(func(what attempt, _ error) bool { return what.loadBalancerID == loadBalancerID })
}
