package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/healthport"
)

// The official CCM's flags for addresses, all of them served over plain HTTP and without asking who it is.
const (
	healthFlag    = "health-probe-bind-addr"
	metricsFlag   = "metrics-bind-addr"
	profilingFlag = "pprof-bind-addr"
)

// addresses are those flags. Nothing is served by default: --secure-port serves all three to those who may.
type addresses struct {
	health, metrics, profiling string
}

func (a *addresses) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&a.health, healthFlag, "",
		"Additional address to serve health on over plain HTTP, as \"host:port\" or \":port\". \"0\" or empty: serve health on --secure-port only.")
	flags.StringVar(&a.metrics, metricsFlag, "",
		"Additional address to serve metrics on over plain HTTP, without authentication. \"0\" or empty: serve metrics on --secure-port only, with authentication.")
	flags.StringVar(&a.profiling, profilingFlag, "",
		"Address to serve /debug/pprof on over plain HTTP, without authentication. The default host is 127.0.0.1. \"0\" or empty: do not serve it.")
}

// byFlag returns the addresses that are set.
func (a *addresses) byFlag() map[string]string {
	set := map[string]string{}
	for name, address := range map[string]string{healthFlag: a.health, metricsFlag: a.metrics, profilingFlag: a.profiling} {
		if address != "" && address != "0" {
			set[name] = address
		}
	}
	return set
}

func (a *addresses) check() error {
	for name, address := range a.byFlag() {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("--%s: %q, accepted: \"host:port\", \":port\", or \"0\" for none", name, address)
		}
	}
	return nil
}

// serve answers on the addresses until stop is closed. secure is that of --secure-port, which serves health over plain
// HTTP anyway: manifests give both flags the same port. Both are nil with --secure-port=0.
func (a *addresses) serve(health http.Handler, secure net.Addr, stop <-chan struct{}) error {
	for name, address := range a.byFlag() {
		handler := health
		host, port, _ := net.SplitHostPort(address) // checked
		switch name {
		case healthFlag:
			if health == nil {
				return fmt.Errorf("--%s: %q, accepted: \"0\" with --secure-port=0, where health is not computed", name, address)
			}
			if _, taken, _ := net.SplitHostPort(secure.String()); taken == port {
				continue
			}
		case metricsFlag:
			metrics := http.NewServeMux()
			metrics.Handle("/metrics", legacyregistry.Handler())
			handler = metrics
		case profilingFlag:
			profiling := mux.NewPathRecorderMux(profilingFlag)
			routes.Profiling{}.Install(profiling)
			handler = profiling
			if host == "" { // the official CCM shows it to the whole network
				address = net.JoinHostPort("127.0.0.1", port)
			}
		}
		if err := healthport.ServePlain(address, handler, stop); err != nil {
			return fmt.Errorf("--%s: %q: %w, accepted: a free address of this machine, or \"0\" for none", name, address, err)
		}
	}
	return nil
}
