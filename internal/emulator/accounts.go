package emulator

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// Accounts are emulated accounts behind one address, each with resources, keys, faults and a journal of its own. The access key of a
// request says whose it is. The first account is there from the start; tests make and delete others.
type Accounts struct {
	first   *Emulator
	handler http.Handler // the first account's
	// options are those of further accounts.
	options Options

	mu     sync.RWMutex
	others map[string]*account // by account id; guarded by mu
	// keys are the accounts by their lasting access keys; guarded by mu.
	keys map[string]*account
}

type account struct {
	*Emulator
	handler http.Handler
	key     cloud.AccessKeyConfig
}

// NewAccounts makes the first account. Further ones have no listeners that accept connections, because all accounts would share the
// loopback addresses, and neither snapshot file nor journal file. A configuration without access keys gets the built-in one, as nobody
// could make a call.
func NewAccounts(o Options) (*Accounts, error) {
	if o.Config != nil && len(o.Config.AccessKeys) == 0 {
		config := *o.Config
		config.AccessKeys = cloud.DefaultConfig().AccessKeys
		o.Config = &config
	}
	first, err := New(o)
	if err != nil {
		return nil, err
	}
	further := o
	further.Fabric, further.Snapshot, further.Journal = false, "", nil
	return &Accounts{first: first, handler: first.Handler(), options: further, others: map[string]*account{}, keys: map[string]*account{}}, nil
}

// Close closes all accounts.
func (a *Accounts) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.first.Close()
	for _, other := range a.others {
		err = errors.Join(err, other.Close())
	}
	return err
}

// Handler serves all accounts: requests go by their access key, paths below /accounts/<id>/ to this account.
func (a *Accounts) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", a.serve)
	mux.Handle("GET /_emulator/accounts", a.options.restricted(http.HandlerFunc(a.list)))
	mux.Handle("POST /_emulator/accounts", a.options.restricted(http.HandlerFunc(a.create)))
	mux.Handle("/_emulator/accounts", a.options.restricted(otherMethod([]string{http.MethodGet, http.MethodPost})))
	mux.Handle("DELETE /_emulator/accounts/{account}", a.options.restricted(http.HandlerFunc(a.delete)))
	mux.Handle("/_emulator/accounts/{account}", a.options.restricted(otherMethod([]string{http.MethodDelete})))
	mux.HandleFunc("/accounts/{account}/", a.serveOne)
	return mux
}

// serveOne serves one account below its path: the admin API, the metadata service and the OpenAPI.
func (a *Accounts) serveOne(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("account")
	a.mu.RLock()
	other := a.others[id]
	a.mu.RUnlock()
	handler := a.handler
	switch {
	case other != nil:
		handler = other.handler
	case id != a.first.store.AccountID:
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no account %q", id))
		return
	}
	http.StripPrefix("/accounts/"+id, handler).ServeHTTP(w, r)
}

// serve finds the account of a request. What no other account knows is the first one's, which then refuses it.
func (a *Accounts) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.RLock()
	alone := len(a.others) == 0
	a.mu.RUnlock()
	handler := a.handler
	// The admin API, the metadata service and the console are deeper than the OpenAPI, of which some clients write the path with a slash at
	// its end.
	if openAPI := !strings.Contains(strings.Trim(r.URL.Path, "/"), "/"); openAPI && !alone {
		if other := a.of(r); other != nil {
			handler = other.handler
		}
	}
	handler.ServeHTTP(w, r)
}

// of is the account whose access key signed a request, or whose role it asks for without one. The body stays readable.
func (a *Accounts) of(r *http.Request) *account {
	if r.Body != nil {
		body, err := io.ReadAll(io.LimitReader(r.Body, rpc.MaxBody+1))
		if err != nil {
			return nil
		}
		defer func() { r.Body = io.NopCloser(bytes.NewReader(body)) }()
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	request, bad := rpc.Read(r)
	if bad != nil {
		return nil
	}
	key := request.AccessKeyID()
	a.mu.RLock()
	defer a.mu.RUnlock()
	if known := a.keys[key]; known != nil {
		return known
	}
	if key == "" {
		// acs:ram::<account>:role/<name>
		parts := strings.Split(request.Params["RoleArn"], ":")
		if len(parts) > 3 {
			return a.others[parts[3]]
		}
		return nil
	}
	for _, other := range a.others {
		if _, temporary := other.keys.find(key); temporary {
			return other
		}
	}
	return nil
}

// accountView is an account as the admin API shows it.
type accountView struct {
	AccountID       string `json:"accountId"`
	AccessKeyID     string `json:"accessKeyId"`
	AccessKeySecret string `json:"accessKeySecret"`
	Region          string `json:"region"`
	// Path is where the admin API and the metadata service of the account are.
	Path string `json:"path"`
}

func (o *account) view() accountView {
	return accountView{o.store.AccountID, o.key.ID, o.key.Secret, o.store.Region, "/accounts/" + o.store.AccountID}
}

func (a *Accounts) list(w http.ResponseWriter, _ *http.Request) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	views := []accountView{}
	for _, id := range slices.Sorted(maps.Keys(a.others)) {
		views = append(views, a.others[id].view())
	}
	reply(w, http.StatusOK, map[string]any{"accounts": views})
}

// errTaken means that an account or an access key has the id of another one.
var errTaken = errors.New("is taken")

// create makes an account of a configuration in YAML or JSON. Without one it is that of the first account; in both cases, without access
// keys it gets one, and without an id, too.
func (a *Accounts) create(w http.ResponseWriter, r *http.Request) {
	// A configuration that is cut off may be a valid one of less.
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSnapshot))
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("read the body: %w", err))
		return
	}
	made, err := a.add(text)
	switch {
	case errors.Is(err, errTaken):
		refuse(w, http.StatusConflict, err)
	case err != nil:
		refuse(w, http.StatusBadRequest, err)
	default:
		reply(w, http.StatusCreated, made.view())
	}
}

func (a *Accounts) add(text []byte) (*account, error) {
	config, err := a.configOf(text)
	if err != nil {
		return nil, err
	}
	options := a.options
	options.Config = config
	e, err := New(options)
	if err != nil {
		return nil, err
	}
	made := &account{Emulator: e, handler: e.Handler(), key: config.AccessKeys[0]}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.free(config); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	a.others[config.AccountID] = made
	for _, key := range config.AccessKeys {
		a.keys[key.ID] = made
	}
	return made, nil
}

// configOf reads the configuration of a further account.
func (a *Accounts) configOf(text []byte) (*cloud.Config, error) {
	config := &cloud.Config{}
	if len(bytes.TrimSpace(text)) > 0 {
		var err error
		if config, err = cloud.ReadConfig(text); err != nil {
			return nil, fmt.Errorf("configuration of the account: %w", err)
		}
	} else {
		copied, err := json.Marshal(a.first.config)
		if err == nil {
			err = json.Unmarshal(copied, config)
		}
		if err != nil {
			return nil, fmt.Errorf("copy the configuration: %w", err)
		}
		config.AccountID, config.AccessKeys = "", nil
	}
	if config.AccountID == "" {
		config.AccountID = newAccountID()
	}
	if len(config.AccessKeys) == 0 {
		config.AccessKeys = []cloud.AccessKeyConfig{{ID: "LTAI" + rand.Text()[:20], Secret: rand.Text()}}
	}
	return config, nil
}

// newAccountID makes an id in the cloud's form: 16 digits.
func newAccountID() string {
	// crypto/rand never fails.
	n, _ := rand.Int(rand.Reader, big.NewInt(9e15))
	return fmt.Sprint(1e15 + n.Int64())
}

// free reports whether account and keys are new. The caller has the lock.
func (a *Accounts) free(config *cloud.Config) error {
	if config.AccountID == a.first.store.AccountID || a.others[config.AccountID] != nil {
		return fmt.Errorf("account %s %w", config.AccountID, errTaken)
	}
	for _, key := range config.AccessKeys {
		if _, first := a.first.keys.find(key.ID); first || a.keys[key.ID] != nil {
			return fmt.Errorf("access key %s %w", key.ID, errTaken)
		}
	}
	return nil
}

// delete removes an account with everything in it.
func (a *Accounts) delete(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("account")
	a.mu.Lock()
	gone := a.others[id]
	delete(a.others, id)
	maps.DeleteFunc(a.keys, func(_ string, of *account) bool { return of == gone })
	a.mu.Unlock()
	if gone == nil {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no account %q that can be deleted", id))
		return
	}
	if err := gone.Close(); err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
