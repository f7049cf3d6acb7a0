package fabric

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Health of a member, as DescribeHealthStatus spells it.
const (
	Normal   = "normal"
	Abnormal = "abnormal"
	// Unavailable means that nothing is known: the listener does not check, or the checks have not reached a threshold.
	Unavailable = "unavailable"
)

// check is how a listener looks after its members. A kind of "" means that it does not.
type check struct {
	// kind is tcp, udp or http.
	kind               string
	interval, timeout  time.Duration
	healthy, unhealthy int
	// port is 0 for the member's own.
	port                 int
	method, uri, domain  string
	codes                string
	request, expectation string
}

// checkOf reads a listener's check. Layer 4 listeners are set with HealthCheckSwitch, layer 7 with HealthCheck.
func checkOf(protocol string, a attributes) check {
	if !a.on("HealthCheckSwitch") && !a.on("HealthCheck") {
		return check{}
	}
	c := check{
		kind: a["HealthCheckType"], interval: a.seconds("HealthCheckInterval"), timeout: a.seconds("HealthCheckConnectTimeout"),
		healthy: a.number("HealthyThreshold"), unhealthy: a.number("UnhealthyThreshold"),
		port: max(a.number("HealthCheckConnectPort"), 0), method: strings.ToUpper(a["HealthCheckMethod"]),
		uri: a["HealthCheckURI"], domain: a["HealthCheckDomain"], codes: a["HealthCheckHttpCode"],
		request: a["HealthCheckReq"], expectation: a["HealthCheckExp"],
	}
	if c.kind == "" {
		c.kind = protocol
	}
	if t := a.seconds("HealthCheckTimeout"); t > 0 {
		c.timeout = t
	}
	c.method = cloud.OrDefault(c.method, "HEAD")
	c.uri = cloud.OrDefault(c.uri, "/")
	c.codes = cloud.OrDefault(c.codes, "http_2xx")
	return c
}

// verdict is what the checks of a member have found out so far.
type verdict struct {
	status string
	// streak counts the results in a row that contradict the status: successes above 0, failures below.
	streak int
}

// next is the verdict after one more result: it turns after as many results in a row as its threshold says.
func (v verdict) next(ok bool, c check) verdict {
	switch {
	case ok && v.status != Normal:
		if v.streak = max(v.streak, 0) + 1; v.streak >= c.healthy {
			return verdict{status: Normal}
		}
	case !ok && v.status != Abnormal:
		if v.streak = min(v.streak, 0) - 1; -v.streak >= c.unhealthy {
			return verdict{status: Abnormal}
		}
	default:
		v.streak = 0
	}
	return v
}

// probeKey names a member as one listener sees it. Listeners that share a group check on their own.
type probeKey struct {
	listener socketKey
	backend  backend
}

// probe is a running series of checks.
type probe struct {
	check   check
	stop    context.CancelFunc
	verdict verdict
}

// health knows the verdicts. The zero value is ready. Its lock is never held while the store's is taken.
type health struct {
	mu     sync.Mutex
	probes map[probeKey]*probe // guarded by mu
}

func (h *health) status(key probeKey) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.probes[key]; p != nil && p.verdict.status != "" {
		return p.verdict.status
	}
	return Unavailable
}

// record adds a result and reports whether the status changed by it.
func (h *health) record(key probeKey, ok bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.probes[key]
	if p == nil {
		return false
	}
	before := p.verdict.status
	p.verdict = p.verdict.next(ok, p.check)
	return p.verdict.status != before
}

// align makes the probes those that are wanted: start begins one and returns how to stop it. A check that was changed
// begins anew with what it knew.
func (h *health) align(wanted map[probeKey]check, start func(probeKey, check) context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.probes == nil {
		h.probes = map[probeKey]*probe{}
	}
	for key, p := range h.probes {
		if _, ok := wanted[key]; !ok {
			p.stop()
			delete(h.probes, key)
		}
	}
	for key, c := range wanted {
		p := h.probes[key]
		if p != nil && p.check == c {
			continue
		}
		if p == nil {
			p = &probe{}
			h.probes[key] = p
		} else {
			p.stop()
		}
		p.check, p.stop = c, start(key, c)
	}
}

// Health is what the checks of a listener have found out about a member: Normal, Abnormal or Unavailable. checked is false
// when this fabric checks nothing, because it opens no sockets.
func (f *Fabric) Health(loadBalancerID string, key cloud.ListenerKey, b cloud.Backend) (status string, checked bool) {
	return f.health.status(probeKey{socketKey{loadBalancerID, key}, backendOf(b)}), f.listen
}

// startProbe checks a member until it is stopped, the first time at once.
func (f *Fabric) startProbe(key probeKey, c check) context.CancelFunc {
	ctx, stop := context.WithCancel(f.ctx)
	f.wait.Go(func() {
		pace := time.NewTicker(max(c.interval, time.Second))
		defer pace.Stop()
		for {
			ok := f.probe(ctx, key, c) == nil
			if ctx.Err() != nil {
				return
			}
			if f.health.record(key, ok) {
				f.wake()
			}
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
			}
		}
	})
	return stop
}
