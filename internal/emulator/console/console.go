// Package console shows people what the emulated cloud holds: load balancers with their listeners, groups, backend servers and health,
// jobs, route tables, instances, security groups, the calls as they arrive and the rate windows. The pages are made on the server and
// follow changes by server-sent events.
//
// It only reads. Whatever changes the cloud is the OpenAPI or the admin API.
package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/journal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/limits"
)

//go:embed page.html static
var files embed.FS

// Network finds out where the network of this host has an address and a listener.
type Network interface {
	LoopbackAddress(ip string) string
	Endpoint(l cloud.ListenerID) string
	Endpoints(l cloud.ListenerID) []fabric.Endpoint
}

// Options configure a console. All fields but Windows and Done are required.
type Options struct {
	Store   *cloud.Store
	Journal *journal.Journal
	// Windows are the rate windows; nil when nothing is limited.
	Windows *limits.Windows
	Network Network
	// Done ends the streams of events.
	Done <-chan struct{}
}

// Console is an http.Handler for everything under /console/. It is safe for concurrent use.
type Console struct {
	options Options
	mux     *http.ServeMux
}

// parsed is the page, parsed when it is first shown: few of the emulators that tests start show one.
var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{"tone": tone, "clock": clock, "day": day, "clip": clip,
		"count": count}).ParseFS(files, "page.html"))
})

// New makes a console.
func New(o Options) *Console {
	c := &Console{options: o, mux: http.NewServeMux()}
	c.mux.HandleFunc("GET /console/{$}", c.index)
	c.mux.HandleFunc("GET /console/events", c.events)
	c.mux.Handle("GET /console/static/", http.StripPrefix("/console/", http.FileServerFS(files)))
	return c
}

// ServeHTTP answers with headers that keep the page from loading anything from elsewhere and from being framed.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	c.mux.ServeHTTP(w, r)
}

func (c *Console) index(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if err := parsed().Execute(&b, c.view(r.URL.Query(), c.options.Store.Now())); err != nil {
		http.Error(w, fmt.Sprintf("render the console: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// The reader is gone when this fails.
	_, _ = b.WriteTo(w)
}

// sections are the parts of the page that are replaced when they change, in the order of the page.
var sections = []string{
	"summary", "services", "shared", "loadbalancers", "networkloadbalancers", "jobs", "routes", "instances", "securitygroups", "accesslists",
	"certificates", "eips", "windows",
	"calls",
}

// render makes the sections of a view.
func (c *Console) render(v view) (map[string]string, error) {
	out := make(map[string]string, len(sections))
	for _, name := range sections {
		var b strings.Builder
		if err := parsed().ExecuteTemplate(&b, name, v); err != nil {
			return nil, fmt.Errorf("render the section %s: %w", name, err)
		}
		out[name] = b.String()
	}
	return out, nil
}

// tone groups statuses by what they mean for the reader; the style sheet gives each tone a color.
func tone(status string) string {
	switch strings.ToLower(status) {
	case "active", "running", "normal", "healthy", "available", "inuse", "succeeded":
		return "good"
	case "abnormal", "unhealthy", "locked", "stopped", "createfailed", "failed":
		return "bad"
	case "starting", "stopping", "pending", "configuring", "deleting", "modifying", "provisioning", "creating", "adding", "removing",
		"processing", "initial":
		return "busy"
	default:
		return "off"
	}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// clipped is how much of a parameter's value a line shows.
const clipped = 300

func clip(s string) string {
	runes := []rune(s)
	if len(runes) <= clipped {
		return s
	}
	return string(runes[:clipped]) + "…"
}
