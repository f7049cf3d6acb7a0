package node

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
	cloudnodeutil "k8s.io/cloud-provider/node/helpers"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// addressesFor returns what the stock node controller is to write into the status of the Node; that controller adds the host
// name. With the kubelet's --node-ip it keeps, of each type, only the addresses named there, and does not initialize a node
// one of whose named addresses is missing.
//
// Where nothing is to be written, the result is empty, which that controller takes for "leave them". It compares lists in their
// order and by the last address of each type, so that it would write again and again to a node with several addresses, and
// whenever ECS lists them in another order.
func (i *Instances) addressesFor(node *corev1.Node, instance alicloud.Instance) []corev1.NodeAddress {
	addresses := addressesOf(instance, i.opts.IPv6)
	for _, named := range nodes.NamedAddresses(node) {
		same := func(text string) bool {
			address, err := netip.ParseAddr(text)
			return err == nil && address == named
		}
		listed := slices.ContainsFunc(addresses, func(a corev1.NodeAddress) bool { return same(a.Address) })
		if !listed && slices.ContainsFunc(instance.InterfaceIPs, same) {
			addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: named.String()})
		}
	}
	if nodes.Uninitialized(node) {
		return addresses
	}
	written, err := statusAddresses(node, addresses)
	if err != nil {
		return addresses // the stock controller says so
	}
	allowed, refused := i.mayWrite(node, written)
	if refused {
		klog.InfoS("The kubelet sets the node's addresses itself (it runs without --cloud-provider=external); the manager does not change them",
			"node", node.Name, "pause", addressPause)
	}
	if !allowed {
		return nil
	}
	return addresses
}

// addressesOf lists the instance's addresses in a stable order: private, public, elastic. Addresses of further network interfaces
// are not among them, because network plugins give those to pods.
func addressesOf(instance alicloud.Instance, ipv6 bool) []corev1.NodeAddress {
	var addresses []corev1.NodeAddress
	add := func(kind corev1.NodeAddressType, values ...string) {
		for _, value := range values {
			if value != "" {
				addresses = append(addresses, corev1.NodeAddress{Type: kind, Address: value})
			}
		}
	}
	add(corev1.NodeInternalIP, instance.PrivateIPs...)
	if ipv6 {
		add(corev1.NodeInternalIP, instance.IPv6...)
	}
	add(corev1.NodeExternalIP, instance.PublicIPs...)
	add(corev1.NodeExternalIP, instance.EIP)
	return addresses
}

// statusAddresses is what the stock node controller makes of the addresses of an initialized node.
func statusAddresses(node *corev1.Node, addresses []corev1.NodeAddress) ([]corev1.NodeAddress, error) {
	all := slices.Clone(addresses)
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeHostName {
			all = append(all, address)
		}
	}
	if named, ok := node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr]; ok {
		return cloudnodeutil.GetNodeAddressesFromNodeIP(named, all)
	}
	return all, nil
}

// sameAddresses reports whether both lists have the same addresses, in any order.
func sameAddresses(a, b []corev1.NodeAddress) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(address corev1.NodeAddress) bool { return !slices.Contains(b, address) })
}

const (
	// addressAttempts is how often addresses are written that somebody else takes back, before they are left to them.
	addressAttempts = 2
	// addressPause is when it is tried again: the kubelet may have been restarted with other flags.
	addressPause = waits.AddressesContested
)

// addressWrite is what the stock node controller was to write into the status of a Node. A kubelet without
// --cloud-provider=external sets the addresses that it finds itself, every few seconds: writing others in each pass would
// change them back and forth.
type addressWrite struct {
	addresses []corev1.NodeAddress
	attempts  int
}

// mayWrite reports whether to write the addresses, if the Node does not have them. refused is true when they are left to somebody else
// from now on.
func (i *Instances) mayWrite(node *corev1.Node, addresses []corev1.NodeAddress) (allowed, refused bool) {
	if sameAddresses(node.Status.Addresses, addresses) {
		i.writes.Delete(node.UID)
		return false, false
	}
	known, _ := i.writes.Get(node.UID)
	write, _ := known.(addressWrite)
	if !sameAddresses(write.addresses, addresses) {
		write = addressWrite{addresses: addresses}
	}
	write.attempts++
	if write.attempts <= addressAttempts+1 {
		i.writes.Set(node.UID, write, addressPause)
	}
	return write.attempts <= addressAttempts, write.attempts == addressAttempts+1
}
