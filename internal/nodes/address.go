package nodes

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
)

// maxAddresses is how many addresses of a node are looked at. A machine has a few; a kubelet may write tens of thousands, which are
// compared with each other.
const maxAddresses = 64

// InternalIP returns the node's first IPv4 InternalIP, else its first of IPv6, "" when it reports none: a kubelet may list those of
// either family first. What is not an IP address is left out.
func InternalIP(node *corev1.Node) string {
	if first := FirstAddress(internalAddresses(node)); first.IsValid() {
		return first.String()
	}
	return ""
}

// FirstAddress returns the first IPv4 address, else the first one, the invalid address where there is none.
func FirstAddress(addresses []netip.Addr) netip.Addr {
	if at := slices.IndexFunc(addresses, netip.Addr.Is4); at >= 0 {
		return addresses[at]
	}
	if len(addresses) > 0 {
		return addresses[0]
	}
	return netip.Addr{}
}

// OwnAddresses returns the addresses by which the node's instance can be found, without duplicates: those of the kubelet's
// --node-ip first, then every InternalIP. What is not an IP address is left out, and so is one with a zone, which is of no use elsewhere.
func OwnAddresses(node *corev1.Node) []netip.Addr {
	addresses := NamedAddresses(node)
	for _, address := range internalAddresses(node) {
		if !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// NamedAddresses are those of the kubelet's --node-ip.
func NamedAddresses(node *corev1.Node) []netip.Addr {
	var named []netip.Addr
	for text := range strings.SplitSeq(node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr], ",") {
		if named = appendAddress(named, text); len(named) == maxAddresses {
			break
		}
	}
	return named
}

func internalAddresses(node *corev1.Node) []netip.Addr {
	var addresses []netip.Addr
	for i := range node.Status.Addresses {
		if node.Status.Addresses[i].Type == corev1.NodeInternalIP {
			addresses = appendAddress(addresses, node.Status.Addresses[i].Address)
		}
		if len(addresses) == maxAddresses {
			break
		}
	}
	return addresses
}

// appendAddress adds the address, unless it is none or one of them already.
func appendAddress(addresses []netip.Addr, text string) []netip.Addr {
	address, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || address.Zone() != "" || slices.Contains(addresses, address) {
		return addresses
	}
	return append(addresses, address)
}
