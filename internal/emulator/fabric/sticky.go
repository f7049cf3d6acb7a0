package fabric

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// How a listener keeps clients with their backend servers by a cookie.
const (
	// stickyInsert adds a cookie of the load balancer's own.
	stickyInsert = "insert"
	// stickyServer writes the backend server into a cookie that the backend server sets.
	stickyServer = "server"
	// insertedCookie is the name of the own cookie.
	insertedCookie = "SERVERID"
)

// mark is how a cookie names a backend server, without showing its address.
func (m backend) mark() string {
	sum := sha256.Sum256([]byte(m.id.String()))
	return hex.EncodeToString(sum[:16])
}

// preferred is the backend server that the request's cookie names; the zero value when it names none that is left.
func (s stickySettings) preferred(r *http.Request, backends []backend, now time.Time) cloud.BackendID {
	value := s.value(r)
	mark, rest, _ := strings.Cut(value, s.separator())
	if mark == "" || (s.mode == stickyInsert && s.expired(rest, now)) {
		return cloud.BackendID{}
	}
	for _, m := range backends {
		if m.mark() == mark {
			return m.id
		}
	}
	return cloud.BackendID{}
}

func (s stickySettings) value(r *http.Request) string {
	if s.mode == "" {
		return ""
	}
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// separator stands between the backend server and what follows: times in the own cookie, the backend server's value in its one. The forms
// of both values are assumed; the vendor does not promise any.
func (s stickySettings) separator() string {
	switch {
	case s.dotted:
		return "."
	case s.mode == stickyServer:
		return "~"
	}
	return "|"
}

// expired reads the time of the last answer in an own cookie, written as last|first in seconds.
func (s stickySettings) expired(times string, now time.Time) bool {
	last, _, _ := strings.Cut(times, s.separator())
	seconds, err := strconv.ParseInt(last, 10, 64)
	return err != nil || now.Sub(time.Unix(seconds, 0)) > s.timeout
}

// hide gives the backend server its own cookie value back.
func (s stickySettings) hide(r *http.Request) {
	if s.mode != stickyServer {
		return
	}
	cookies := r.Cookies()
	r.Header.Del("Cookie")
	for _, c := range cookies {
		if c.Name == s.cookie {
			if _, own, marked := strings.Cut(c.Value, s.separator()); marked {
				c.Value = own
			}
		}
		r.AddCookie(c)
	}
}

// mark writes the backend server into the answer's cookies.
func (s stickySettings) mark(answer *http.Response, m backend, now time.Time) {
	switch s.mode {
	case stickyInsert:
		at := strconv.FormatInt(now.Unix(), 10)
		cookie := http.Cookie{Name: s.cookie, Value: strings.Join([]string{m.mark(), at, at}, s.separator()), Path: "/"}
		answer.Header.Add("Set-Cookie", cookie.String())
	case stickyServer:
		cookies := answer.Cookies()
		answer.Header.Del("Set-Cookie")
		for _, c := range cookies {
			if c.Name == s.cookie {
				c.Value = m.mark() + s.separator() + c.Value
			}
			answer.Header.Add("Set-Cookie", c.String())
		}
	}
}
