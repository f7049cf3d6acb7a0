package fabric

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Health of a backend server.
const (
	Normal      = cloud.HealthNormal
	Abnormal    = cloud.HealthAbnormal
	Unavailable = cloud.HealthUnavailable
)

// defaultCodes are the status codes that an HTTP check accepts unless it names others.
const defaultCodes = "http_2xx"

// check is how a listener checks the health of its backend servers. A kind of "" means that it does not.
type check struct {
	// kind is tcp, udp or http.
	kind               string
	interval, timeout  time.Duration
	healthy, unhealthy int
	// port is 0 for the backend server's own.
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
	c.codes = cloud.OrDefault(c.codes, defaultCodes)
	return c
}

// verdict is what the checks of a backend server have found out so far.
type verdict struct {
	status string
	// streak counts the results in a row that contradict the status: successes above 0, failures below.
	streak int
	// reason is why the last check failed; "" when it did not.
	reason string
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

// probeKey names a backend server as one listener sees it. Listeners that share a group check on their own.
type probeKey struct {
	listener cloud.ListenerID
	backend  cloud.BackendID
}

// health knows the verdicts by listener. The zero value is ready. Nobody takes the store's lock under this one.
type health struct {
	mu       sync.Mutex
	verdicts map[cloud.ListenerID]map[cloud.BackendID]verdict // guarded by mu
}

func (h *health) status(key probeKey) string { return h.of(key).Status }

func (h *health) of(key probeKey) cloud.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.verdicts[key.listener][key.backend]
	return cloud.Health{Status: cloud.OrDefault(v.status, Unavailable), Reason: v.reason}
}

// checks reports whether a backend server is checked.
func (h *health) checks(key probeKey) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, known := h.verdicts[key.listener][key.backend]
	return known
}

// record adds a result, nil for a success, and reports whether the status changed by it.
func (h *health) record(key probeKey, result error, c check) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.verdicts[key.listener]
	if of == nil {
		return false
	}
	before := of[key.backend]
	now := before.next(result == nil, c)
	now.reason = reasonOf(result)
	of[key.backend] = now
	return now.status != before.status
}

// keep forgets the verdicts of backend servers that a listener no longer has. Only a listener that checks may record.
func (h *health) keep(listener cloud.ListenerID, backends []backend) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.verdicts == nil {
		h.verdicts = map[cloud.ListenerID]map[cloud.BackendID]verdict{}
	}
	kept := make(map[cloud.BackendID]verdict, len(backends))
	for _, m := range backends {
		kept[m.id] = h.verdicts[listener][m.id]
	}
	h.verdicts[listener] = kept
}

func (h *health) forget(listener cloud.ListenerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.verdicts, listener)
}

// Health is what the checks of a listener have found out about a backend server. checked is false when this fabric checks nothing, because
// it opens no sockets.
func (f *Fabric) Health(l cloud.ListenerID, b cloud.BackendID) (found cloud.Health, checked bool) {
	found = f.health.of(probeKey{l, b})
	if found.Status == Unavailable && f.health.checks(probeKey{l, b}) && !f.holds("network.undecided-server") {
		found.Status = Abnormal
	}
	if found.Reason == checkFail && !f.holds("network.nlb-check-fail") {
		found.Reason = "RESPONSE_FAILURE" // as ALB names it
	}
	return found, f.listen
}

// watch checks the backend servers of a listener, round by round, until ctx ends. One goroutine per listener reads the backend servers
// anew each time, so that a change of the group costs nothing here.
func (f *Fabric) watch(ctx context.Context, listener cloud.ListenerID) {
	defer f.health.forget(listener)
	for {
		pause := time.Second
		s, backends, ok := f.readListener(listener)
		if ok && s.check.kind != "" {
			f.round(ctx, s, backends)
			pause = max(s.check.interval, pause)
		} else {
			f.health.forget(listener)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

const (
	// probesAtOnce bounds the checks of one listener in flight, so that backend servers that swallow packets delay the others of a
	// long group little.
	probesAtOnce = 32
	// probesPerSecond bounds the checks of the whole cloud: with more backend servers than that per interval, the interval
	// stretches instead of the checks taking the processors.
	probesPerSecond = 2000
)

// round checks each backend server once.
func (f *Fabric) round(ctx context.Context, s settings, backends []backend) {
	f.health.keep(s.key, backends)
	var probes errgroup.Group
	probes.SetLimit(probesAtOnce)
	for _, m := range backends {
		if f.pace.Wait(ctx) != nil {
			break
		}
		probes.Go(func() error {
			result := f.probe(ctx, m, s.check, f.ownSource(s, s.vips[0]))
			if ctx.Err() == nil && f.health.record(probeKey{s.key, m.id}, result, s.check) {
				f.wake()
			}
			return nil
		})
	}
	// No probe returns an error: a failed one is a result.
	_ = probes.Wait()
}
