// Package emulator is Alibaba Cloud in memory, at wire level: the OpenAPI of ECS, VPC, CLB, NLB, STS and the Quota Center, the metadata
// service of its instances, an admin API to look inside and to break things, and the network that its load balancers and routes make.
//
// It stands in for the cloud in tests and local clusters. It is not a server for anybody's production.
package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/console"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/ecs"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/faults"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/journal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/limits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/metadata"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/quotas"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/slb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/sts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/vpc"
)

// Config is what exists at the start; see cloud.Config.
type Config = cloud.Config

// Call is an entry of the journal.
type Call = journal.Call

// Rate limits that Options.RateLimits accepts.
const (
	RateLimitsOff       = "off"
	RateLimitsPublished = "published"
)

// Options configure an emulator. The zero value is a working one.
type Options struct {
	// Config is the start configuration; nil is the built-in one.
	Config *Config
	// Latency is added to every OpenAPI call, while it holds what it works on.
	Latency time.Duration
	// Settle is the time that asynchronous states take. 0 makes them immediate.
	Settle time.Duration
	// RateLimits is off (default) or published.
	RateLimits string
	// Fabric opens the listeners of active load balancers as real sockets.
	Fabric bool
	// Machines reaches what runs on an instance; nil means loopback sockets.
	Machines fabric.Machines
	// Network opens the sockets of listeners and connects to their backend servers; nil means loopback addresses and Machines.
	Network fabric.Network
	// Journal receives every call as a line of JSON; nil writes none.
	Journal io.Writer
	// Snapshot is a file from which all resources are restored at the start, if it exists, and to which Close saves them.
	Snapshot string
	// OpenAdmin lets clients on other machines use the admin API and the console. By default, only loopback clients may.
	OpenAdmin bool
	// JournalLimit is how many calls are kept in memory; 0 means journal.DefaultLimit.
	JournalLimit int
}

// Emulator is one emulated account and region. It is safe for concurrent use; any number may run in one process.
type Emulator struct {
	options  Options
	config   *Config
	store    *cloud.Store
	table    *api.Table
	verifier *rpc.Verifier
	keys     *keyring
	faults   faults.Set
	journal  *journal.Journal
	windows  *limits.Windows
	metadata *metadata.Service
	fabric   *fabric.Fabric
	console  *console.Console
	// flipped are the facts that do not hold, for calls that do not have the store's lock.
	flipped atomic.Pointer[facts.Set]
	// carried are the facts that decided about traffic.
	carried sync.Map

	// done is closed by Close; calls that spend a latency stop waiting then.
	done  chan struct{}
	close sync.Once
}

// New builds an emulator. Everything wrong with the configuration is reported in one error.
func New(o Options) (*Emulator, error) {
	config := o.Config
	if config == nil {
		config = cloud.DefaultConfig()
	}
	store, err := cloud.New(config, o.Settle)
	if err != nil {
		return nil, fmt.Errorf("build the emulated cloud: %w", err)
	}
	if o.Snapshot != "" {
		// A file that cannot be written at the end would lose everything then.
		if err = cloud.CanSave(o.Snapshot); err != nil {
			return nil, err
		}
		if _, err = store.Load(o.Snapshot); err != nil {
			return nil, err
		}
	}
	e := &Emulator{
		options: o, config: config, store: store, done: make(chan struct{}),
		keys:    newKeyring(config),
		journal: journal.New(o.JournalLimit, o.Journal),
	}
	e.flip(store.Flipped)
	tokens, err := sts.Product(sts.Options{
		AccountID: store.AccountID, Roles: config.Roles, Providers: config.OIDCProviders,
		Issue: e.keys.session, Principal: e.keys.principal,
	})
	if err != nil {
		return nil, err
	}
	e.table = api.NewTable(slb.Product(store), nlb.Product(store), vpc.Product(store), ecs.Product(store), tokens, quotas.Product(store))
	if e.windows, err = e.limited(o.RateLimits, config.RateLimits); err != nil {
		return nil, err
	}
	e.verifier = &rpc.Verifier{Find: e.keys.find, Statuses: statuses(config.Statuses), Ahead: store.Ahead}
	e.metadata = metadata.New(store, e.keys.roleCredentials)
	e.fabric = fabric.New(fabric.Options{Store: store, Network: o.Network, Machines: o.Machines, Listen: o.Fabric, Holds: e.carries})
	store.Health = e.fabric.Health
	e.console = console.New(console.Options{
		Store: store, Journal: e.journal, Windows: e.windows, Network: e.fabric, Done: e.done,
	})
	return e, nil
}

// limited makes the rate windows of a mode with the configured quotas in their place; nil when nothing is limited.
func (e *Emulator) limited(mode string, configured map[string]cloud.RateLimitConfig) (*limits.Windows, error) {
	quotas := limits.Quotas(limits.Unlimited)
	switch mode {
	case "", RateLimitsOff:
		if len(configured) == 0 {
			return nil, nil //nolint:nilnil // nil windows admit everything
		}
	case RateLimitsPublished:
		quotas = limits.Published
	default:
		return nil, fmt.Errorf("rate limits %q: known are %s and %s", mode, RateLimitsOff, RateLimitsPublished)
	}
	own := map[string]limits.Quota{}
	for name, c := range configured {
		product, action, _ := strings.Cut(name, ":")
		switch {
		case e.table.Find(product, action) == nil:
			return nil, fmt.Errorf("rateLimits: %q, accepted: product and action such as slb:CreateLoadBalancer", name)
		case c.Calls < 0 || c.Seconds < 0:
			return nil, fmt.Errorf("rateLimits.%s: %d calls in %d seconds, accepted: numbers from 0", name, c.Calls, c.Seconds)
		}
		own[name] = limits.Quota{Calls: c.Calls, Window: time.Duration(cmp.Or(c.Seconds, 60)) * time.Second}
	}
	return limits.New(limits.Replaced(quotas, own)), nil
}

func statuses(c cloud.StatusConfig) rpc.Statuses {
	s := rpc.DefaultStatuses
	if c.InvalidAccessKey != 0 {
		s.InvalidAccessKey = c.InvalidAccessKey
	}
	if c.SignatureMismatch != 0 {
		s.SignatureMismatch = c.SignatureMismatch
	}
	return s
}

// Close stops the network and every timer. Calls in flight end without their latency.
func (e *Emulator) Close() error {
	var err error
	e.close.Do(func() {
		close(e.done)
		e.store.Close()
		err = e.fabric.Close()
		if e.options.Snapshot != "" {
			err = errors.Join(err, e.store.Save(e.options.Snapshot))
		}
	})
	return err
}

// Handler serves the OpenAPI, the metadata service, the admin API and the console.
func (e *Emulator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// Clients of the OpenAPI ask for JSON or XML, and for an action; a person who opens the address wants to see something.
		if r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.RawQuery == "" && strings.Contains(r.Header.Get("Accept"), "text/html") {
			http.Redirect(w, r, "/console/", http.StatusFound)
			return
		}
		e.serveOpenAPI(w, r)
	})
	mux.Handle("/metadata/{instance}/", e.metadata)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		// The prober is gone when this fails.
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("/console/", e.options.restricted(e.console))
	e.admin(mux)
	return mux
}

// Fabric is the network of the emulated cloud.
func (e *Emulator) Fabric() *fabric.Fabric { return e.fabric }

// AccountID is the number of the account.
func (e *Emulator) AccountID() string { return e.store.AccountID }

// Permit changes what an access key may do, to patterns of the form of RAM policies; none means everything. It reports false
// for a key that is not there.
func (e *Emulator) Permit(keyID string, patterns ...string) bool {
	return e.keys.permit(keyID, patterns)
}

// Actions is the table of all actions, for documentation and coverage.
func (e *Emulator) Actions() *api.Table { return e.table }

// Calls returns the journal's entries with a number above after.
func (e *Emulator) Calls(after int64) []Call { return e.journal.After(after) }

// Changed returns a channel that is closed at the next change of any resource, also when a status settles. Take the
// channel before reading, then wait on it; changes in between coalesce.
func (e *Emulator) Changed() <-chan struct{} { return e.store.Changed() }
