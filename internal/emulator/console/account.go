package console

import (
	"fmt"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// accessList is an access control list of CLB.
type accessList struct {
	ID, Name string
	Entries  []cloud.ACLEntry
	// More is how many entries are not shown.
	More  int
	Users []string
}

// accessLists copies those that match by name, ID or an address block.
func (c *Console) accessLists(query string) list[accessList] {
	found := filtered[accessList]{query: query}
	for l := range c.options.Store.ACLs.All() {
		words := []string{l.ID, l.Name}
		for _, e := range l.Entries {
			words = append(words, e.CIDR)
		}
		found.offer(func() accessList {
			v := accessList{ID: l.ID, Name: l.Name, Entries: slices.Clone(l.Entries[:min(len(l.Entries), shown)])}
			v.More = len(l.Entries) - len(v.Entries)
			for _, bound := range c.options.Store.ListenersWithACL(l.ID) {
				v.Users = append(v.Users, bound.LoadBalancer.ID+" "+portName(bound.Listener))
			}
			return v
		}, words...)
	}
	return found.list
}

type certificate struct {
	ID, Name, CommonName string
	CA, Expired          bool
	Expires              time.Time
	Users                []string
}

// certificates copies those that match by name, ID or domain.
func (c *Console) certificates(query string, now time.Time) list[certificate] {
	found := filtered[certificate]{query: query}
	for cert := range c.options.Store.Certificates.All() {
		found.offer(func() certificate {
			return certificate{cert.ID, cert.Name, cert.CommonName, cert.CA, !cert.Expires.After(now), cert.Expires, c.usersOf(cert.ID, now)}
		}, append([]string{cert.ID, cert.Name, cert.CommonName}, cert.SANs...)...)
	}
	return found.list
}

// usersOf returns the listeners that have a certificate, also for one more domain.
func (c *Console) usersOf(certificateID string, now time.Time) []string {
	s := c.options.Store
	var users []string
	for lb := range s.LoadBalancers.All() {
		for _, l := range lb.SortedListeners() {
			if l.Attributes["ServerCertificateId"] == certificateID || l.Attributes["CACertificateId"] == certificateID {
				users = append(users, lb.ID+" "+portName(l))
			}
		}
	}
	for e := range s.Extensions.All() {
		if e.CertificateID == certificateID {
			users = append(users, fmt.Sprintf("%s https/%d for %s", e.LoadBalancerID, e.ListenerPort, e.Domain))
		}
	}
	for lb := range s.NLBs.All() {
		for _, l := range s.NLBListenersOf(lb.ID, now) {
			if slices.Contains(slices.Concat(l.Certificates, l.CAs, l.AdditionalCertificates), certificateID) {
				users = append(users, lb.ID+" "+l.Protocol+"/"+portsOf(l))
			}
		}
	}
	return users
}

type eip struct {
	ID, Name, Address, Status, Holder string
	Bandwidth                         int
}

// eips copies those that match.
func (c *Console) eips(query string, now time.Time) list[eip] {
	found := filtered[eip]{query: query}
	for e := range c.options.Store.EIPs.All() {
		found.offer(func() eip {
			return eip{e.ID, e.Name, e.Address, e.Phase.At(now), e.Holder(now), e.Bandwidth}
		}, e.ID, e.Name, e.Address, e.InstanceID)
	}
	return found.list
}
