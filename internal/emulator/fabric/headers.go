package fabric

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"
)

// rewrite makes the request to the backend server: the client's own, with the headers that the listener adds. ReverseProxy takes
// the X-Forwarded headers of the client away first. The names of the headers are assumed where the attribute does not hold
// them: no page that we could read spells them.
func (w *web) rewrite(pr *httputil.ProxyRequest) {
	x := exchangeOf(pr.In.Context())
	s, out := x.settings, pr.Out
	out.URL.Scheme, out.URL.Host, out.Host = "http", "backend", pr.In.Host
	if before, ok := pr.In.Header["X-Forwarded-For"]; ok {
		out.Header["X-Forwarded-For"] = before
	}
	if s.web.forwardedFor {
		appendForwardedFor(out.Header, x.source.Addr().String())
	}
	if s.web.proto {
		out.Header.Set("X-Forwarded-Proto", s.key.Protocol)
	}
	for _, h := range []struct {
		on                   bool
		name, flipped, value string
	}{
		{s.web.slbPort, "X-Forwarded-Port", "Slb-Port", strconv.Itoa(s.key.Port)},
		{s.web.srcPort, "X-Forwarded-Client-Srcport", "X-Forwarded-Client-Port", strconv.Itoa(int(x.source.Port()))},
		{s.web.slbIP, "Slb-Ip", "X-Forwarded-Slb-Ip", s.vips[0].Address},
		{s.web.slbID, "Slb-Id", "X-Forwarded-Slb-Id", s.key.LoadBalancerID},
	} {
		switch {
		case !h.on:
		case w.fabric.holds("network.header-names"):
			out.Header.Set(h.name, h.value)
		default:
			out.Header.Set(h.flipped, h.value)
		}
	}
}

func appendForwardedFor(h http.Header, client string) {
	if before := h.Get("X-Forwarded-For"); before != "" {
		client = before + ", " + client
	}
	h.Set("X-Forwarded-For", client)
}

// modifyResponse keeps the client with its backend server where the listener is sticky.
func modifyResponse(answer *http.Response) error {
	x := exchangeOf(answer.Request.Context())
	x.waiting.Stop()
	x.settings.web.sticky.mark(answer, *x.chosen, time.Now())
	return nil
}

// fail answers for a backend server that did not. Which status means what is assumed.
func (w *web) fail(rw http.ResponseWriter, r *http.Request, _ error) {
	status := http.StatusBadGateway
	switch x := exchangeOf(r.Context()); {
	case errors.Is(context.Cause(r.Context()), errRequestTimeout):
		status = http.StatusGatewayTimeout
	case !x.tried:
		status = http.StatusServiceUnavailable
	}
	if !w.fabric.holds("network.statuses") {
		status = http.StatusBadGateway
	}
	http.Error(rw, strconv.Itoa(status)+" "+http.StatusText(status), status)
}

// redirect sends the client to the HTTPS listener that the HTTP listener forwards to.
func redirect(rw http.ResponseWriter, r *http.Request, s webSettings) {
	host := r.Host
	if name, _, err := net.SplitHostPort(r.Host); err == nil {
		host = name
	}
	if s.forwardPort != 443 {
		host = net.JoinHostPort(host, strconv.Itoa(s.forwardPort))
	}
	target := *r.URL
	target.Scheme, target.Host = "https", host
	code := s.forwardCode
	if code == 0 {
		code = http.StatusMovedPermanently
	}
	http.Redirect(rw, r, target.String(), code)
}
