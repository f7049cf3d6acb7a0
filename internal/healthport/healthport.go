// Package healthport serves the one port of the cloud controller manager: health over plain HTTP and over HTTPS,
// everything else over HTTPS with authentication and authorisation only.
//
// The stock app serves /healthz, over HTTPS only. Manifests of the official CCM probe it over plain HTTP, and today's
// charts ask for /livez and /readyz. So the stock server moves to a listener in memory, where it goes on computing the
// health of election and controllers, and this package answers on the port in its place.
//
// It does not decide what healthy means.
package healthport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"google.golang.org/grpc/test/bufconn"
	apiserver "k8s.io/apiserver/pkg/server"
	componentbaseconfig "k8s.io/component-base/config"
	controllermanager "k8s.io/controller-manager/app"
	"k8s.io/klog/v2"
)

// Paths are answered over both protocols, all three by the stock health check, which fails when a controller is stuck: such a manager is
// neither to be kept alive nor to be counted as ready. /readyz asks its caller of [Serve], too, which no restart would help.
var Paths = []string{"/healthz", "/livez", readyPath}

const readyPath = "/readyz"

// memoryBuffer holds one health answer with room to spare.
const memoryBuffer = 64 << 10

const (
	// readHeaderTimeout ends connections that send no request; probes and scrapers send theirs at once.
	readHeaderTimeout = 10 * time.Second
	// idleTimeout ends connections that send no further request. Prometheus scrapes every 15 to 60 seconds, and connects again.
	idleTimeout = 30 * time.Second
)

// Serve takes the port over from serving and answers on it until stop is closed. It replaces serving's listener by one in memory, on which
// the stock app then serves. ready returns why the process is not ready, nil if it is. It returns what plain HTTP shows, for further
// addresses.
func Serve(serving *apiserver.SecureServingInfo, debugging *componentbaseconfig.DebuggingConfiguration,
	authn *apiserver.AuthenticationInfo, authz *apiserver.AuthorizationInfo, ready func() error, stop <-chan struct{},
) (plainHealth http.Handler, err error) {
	split := newSplitter(newBounded(serving.Listener, maxConnections, maxPerSource))
	stock := bufconn.Listen(memoryBuffer)
	health := checks(healthHandler(stock), ready)

	secure := *serving
	secure.Listener = split.tls
	base := controllermanager.NewBaseHandler(debugging, health[Paths[0]])
	for _, path := range Paths[1:] {
		base.Handle(path, health[path])
	}
	handler := controllermanager.BuildHandlerChain(base, authz, authn)
	if _, _, err := secure.Serve(handler, 0, stop); err != nil {
		return nil, err
	}

	serving.Listener = stock
	plainHealth = plainHandler(health)
	plain := newServer(plainHealth)
	plain.ReadTimeout = readHeaderTimeout // a probe has no body
	plain.SetKeepAlivesEnabled(false)     // probes are all that comes here, and a kubelet opens a connection for each
	go split.run()
	go func() { _ = plain.Serve(split.plain) }()
	go func() {
		<-stop
		_ = split.Close()
		_ = plain.Close()
		_ = stock.Close()
	}()
	return plainHealth, nil
}

// ServePlain answers on a further address over plain HTTP until stop is closed. The error says why it cannot listen.
func ServePlain(address string, handler http.Handler, stop <-chan struct{}) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address) //nolint:forbidigo // binding a local port does not wait
	if err != nil {
		return err
	}
	server := newServer(handler)
	go func() { _ = server.Serve(newBounded(listener, maxConnections, maxPerSource)) }()
	go func() {
		<-stop
		_ = server.Close()
	}()
	return nil
}

// newServer returns a server whose connections end. It has no ReadTimeout, which would cut a CPU profile of 30 seconds short: Go cancels
// the request's context when that timeout passes.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout}
}

// plainHandler shows health and nothing else: plain HTTP carries no identity.
func plainHandler(health map[string]http.Handler) http.Handler {
	mux := http.NewServeMux()
	for path, handler := range health {
		mux.Handle(path, handler)
	}
	return mux
}

// checks returns what answers each of the paths.
func checks(health http.Handler, ready func() error) map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for _, path := range Paths {
		handlers[path] = health
	}
	handlers[readyPath] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := ready()
		if err == nil {
			health.ServeHTTP(w, r)
			return
		}
		klog.V(2).InfoS("Not ready", "reason", err.Error())
		http.Error(w, "[-]ready failed: reason withheld", http.StatusInternalServerError) // whoever asks need not be anybody
	})
	return handlers
}

// healthHandler passes every request to /healthz of the stock app.
func healthHandler(stock *bufconn.Listener) http.Handler {
	transport := &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := stock.DialContext(ctx)
			if err != nil {
				return nil, err
			}
			// The peer is this process: there is nobody else on the in-memory listener to mistake it for.
			return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}), nil //nolint:gosec // see above
		},
		DisableKeepAlives: true,
	}
	target := &url.URL{Scheme: "https", Host: "localhost", Path: "/healthz"}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			verbose := r.In.URL.Query().Has("verbose")
			r.Out.URL = target
			if verbose {
				r.Out.URL = &url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path, RawQuery: "verbose"}
			}
			r.Out.Header.Del("Authorization") // health needs no identity, and none should travel further than it must
		},
		// The default writes a line for every probe that goes away before its answer, so that anybody could fill the log.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			klog.V(2).InfoS("Cannot answer a health request", "err", err)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
}
