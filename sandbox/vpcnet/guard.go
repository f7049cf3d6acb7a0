//go:build linux

package vpcnet

import (
	"fmt"
	"reflect"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// ifname is the key of an interface name in a set: as long as the kernel's.
func ifname(name string) []byte {
	key := make([]byte, unix.IFNAMSIZ)
	copy(key, name)
	return key
}

// Positions of the addresses in an IPv4 header.
const (
	sourceOffset      = 12
	destinationOffset = 16
	addressLength     = 4
)

// applyGuard writes the source and destination check, and the mark for the load balancer's sockets, as one table in one transaction:
//
//	table ip guard {
//	  set inside  { links of the VPC }
//	  set checked { links whose interface checks }
//	  set owned   { link . address }
//	  chain in  { prerouting:  iifname @checked  iifname . ip saddr != @owned  drop
//	                           iifname @inside   socket transparent 1  meta mark set 1 }
//	  chain out { postrouting: oifname @checked  oifname . ip daddr != @owned  drop }
//	}
func (k *kernel) applyGuard(g guard) error {
	if reflect.DeepEqual(g, k.have.guard) {
		return nil
	}
	c, err := nftables.New(nftables.WithNetNSFd(int(k.ns.handle)))
	if err != nil {
		return fmt.Errorf("reach nftables: %w", err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "guard"}
	// Adding a table that exists is no error, so that it can be deleted whether it did or not.
	c.AddTable(table)
	c.DelTable(table)
	c.AddTable(table)
	sets, err := addSets(c, table, g)
	if err != nil {
		return err
	}
	chain := func(name string, hook *nftables.ChainHook) *nftables.Chain {
		return c.AddChain(&nftables.Chain{
			Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityMangle,
		})
	}
	in, out := chain("in", nftables.ChainHookPrerouting), chain("out", nftables.ChainHookPostrouting)
	c.AddRule(&nftables.Rule{Table: table, Chain: in, Exprs: check(expr.MetaKeyIIFNAME, sourceOffset, sets)})
	c.AddRule(&nftables.Rule{Table: table, Chain: in, Exprs: markBalanced(sets.inside)})
	c.AddRule(&nftables.Rule{Table: table, Chain: out, Exprs: check(expr.MetaKeyOIFNAME, destinationOffset, sets)})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("write the source and destination check: %w", err)
	}
	k.have.guard = g
	return nil
}

type guardSets struct{ inside, checked, owned *nftables.Set }

func addSets(c *nftables.Conn, table *nftables.Table, g guard) (guardSets, error) {
	// An ID holds within the transaction. Without one the library counts in a variable that two networks would race for.
	sets := guardSets{
		inside:  &nftables.Set{Table: table, ID: 1, Name: "inside", KeyType: nftables.TypeIFName},
		checked: &nftables.Set{Table: table, ID: 2, Name: "checked", KeyType: nftables.TypeIFName},
		owned: &nftables.Set{
			Table: table, ID: 3, Name: "owned", Concatenation: true,
			KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeIPAddr),
		},
	}
	links := func(names []string) []nftables.SetElement {
		var elements []nftables.SetElement
		for _, name := range names {
			elements = append(elements, nftables.SetElement{Key: ifname(name)})
		}
		return elements
	}
	var addresses []nftables.SetElement
	for _, o := range g.owned {
		addresses = append(addresses, nftables.SetElement{Key: append(ifname(o.link), o.address.AsSlice()...)})
	}
	for set, elements := range map[*nftables.Set][]nftables.SetElement{
		sets.inside: links(g.inside), sets.checked: links(g.checked), sets.owned: addresses,
	} {
		if err := c.AddSet(set, elements); err != nil {
			return sets, fmt.Errorf("make the set %s: %w", set.Name, err)
		}
	}
	return sets, nil
}

// check drops what a checked link carries for an address that is not its own.
func check(link expr.MetaKey, offset uint32, sets guardSets) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: link, Register: unix.NFT_REG_1},
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: sets.checked.Name, SetID: sets.checked.ID},
		// The address goes into the register behind the link's name: together they are the key.
		&expr.Payload{OperationType: expr.PayloadLoad, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: addressLength,
			DestRegister: unix.NFT_REG_2},
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: sets.owned.Name, SetID: sets.owned.ID, Invert: true},
		&expr.Counter{},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}
}

// markBalanced marks the answers of backend servers to sockets of the load balancer that have a client's address.
func markBalanced(inside *nftables.Set) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: unix.NFT_REG_1},
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: inside.Name, SetID: inside.ID},
		&expr.Socket{Key: expr.SocketKeyTransparent, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{1}},
		&expr.Immediate{Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint32(balancerMark)},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: unix.NFT_REG_1, SourceRegister: true},
	}
}
