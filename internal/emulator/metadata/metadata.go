// Package metadata is the metadata service that an instance sees at http://100.100.100.200/latest/, served for every
// instance under a path of its own.
package metadata

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Credentials are the temporary credentials of a role.
type Credentials struct {
	AccessKeyID, AccessKeySecret, SecurityToken string
	Expiration, LastUpdated                     time.Time
}

// Service serves /metadata/<instance>/latest/... . It is safe for concurrent use.
type Service struct {
	store *cloud.Store
	role  func(role string, now time.Time) (Credentials, bool)
	mux   *http.ServeMux

	mu     sync.Mutex
	tokens map[string]token // guarded by mu
}

// token is a session of the hardened mode; it is worth something on its own instance only.
type token struct {
	instance string
	until    time.Time
}

const (
	ttlHeader   = "X-aliyun-ecs-metadata-token-ttl-seconds"
	tokenHeader = "X-aliyun-ecs-metadata-token"
	// maxTTL is the longest life of a token in seconds.
	maxTTL = 21600
)

// New makes the service; role returns the present credentials of a RAM role.
func New(store *cloud.Store, role func(role string, now time.Time) (Credentials, bool)) *Service {
	s := &Service{store: store, role: role, mux: http.NewServeMux(), tokens: map[string]token{}}
	s.mux.HandleFunc("PUT /metadata/{instance}/latest/api/token", s.putToken)
	s.mux.HandleFunc("GET /metadata/{instance}/latest/{path...}", s.get)
	return s
}

// ServeHTTP serves one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Service) putToken(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("instance")
	f, ok := s.facts(id)
	if !ok || f.endpoint == "disabled" {
		http.NotFound(w, r)
		return
	}
	ttl, err := strconv.Atoi(r.Header.Get(ttlHeader))
	if err != nil || ttl < 1 || ttl > maxTTL {
		http.Error(w, "the header "+ttlHeader+" must be 1-21600", http.StatusBadRequest)
		return
	}
	text, now := rand.Text(), s.store.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, t := range s.tokens {
		if now.After(t.until) {
			delete(s.tokens, k)
		}
	}
	s.tokens[text] = token{id, now.Add(time.Duration(ttl) * time.Second)}
	answer(w, text)
}

// answer writes a text. The reader is gone when that fails.
func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, text)
}

func (s *Service) get(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("instance")
	f, ok := s.facts(id)
	if !ok || f.endpoint == "disabled" {
		http.NotFound(w, r)
		return
	}
	if !s.mayRead(r, id, f.tokens == "required") {
		http.Error(w, "a valid token is required", http.StatusForbidden)
		return
	}
	key := r.PathValue("path")
	if role, ok := strings.CutPrefix(key, "meta-data/ram/security-credentials/"); ok && role != "" {
		s.getRole(w, r, f.role, role)
		return
	}
	if text, ok := f.lookup(key); ok {
		answer(w, text)
		return
	}
	http.NotFound(w, r)
}

// mayRead checks the token: a wrong one is refused in either mode, a missing one in the hardened mode only.
func (s *Service) mayRead(r *http.Request, id string, required bool) bool {
	text := r.Header.Get(tokenHeader)
	if text == "" {
		return !required
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tokens[text]
	return ok && t.instance == id && s.store.Now().Before(t.until)
}

func (s *Service) getRole(w http.ResponseWriter, r *http.Request, have, want string) {
	c, ok := s.role(have, s.store.Now())
	if !ok || have != want {
		http.NotFound(w, r)
		return
	}
	document := struct {
		AccessKeyId, AccessKeySecret, SecurityToken, Expiration, LastUpdated, Code string //nolint:revive // names on the wire
	}{c.AccessKeyID, c.AccessKeySecret, c.SecurityToken, cloud.Timestamp(c.Expiration), cloud.Timestamp(c.LastUpdated), "Success"}
	w.Header().Set("Content-Type", "application/json")
	// The reader is gone when this fails.
	_ = json.NewEncoder(w).Encode(document)
}
