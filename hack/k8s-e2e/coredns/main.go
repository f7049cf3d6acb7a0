// Command coredns is CoreDNS with the plugins that answer for Services and ask another name server, and no others: the specs look Services
// and load balancers up by their names.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order in which a query goes through them, as in CoreDNS's own list.
	dnsserver.Directives = []string{"ready", "errors", "cache", "kubernetes", "forward"}
	coremain.Run()
}
