// Package vpcnet is the network of the emulated cloud in the Linux kernel: machines are network namespaces, the VPC is a router
// namespace whose kernel routes are the emulator's route tables, and load balancers listen on their VIPs there.
//
//	machine (namespace)            cloud (namespace)                    internet (namespace)
//	eth0 10.1.0.1/32  ──veth──  m1 ─┐                               ┌─ o1  ──veth── eth0 203.0.113.10/32
//	eth0 10.2.0.1/32  ──veth──  m2 ─┤  policy routing: one table    ├─ c1  ──veth── the control plane
//	                                │  for each VPC route table     │
//	                                └─ VIPs, 100.100.100.200 ───────┘
//
// Each machine has a link of its own into the cloud, so the cloud knows from which one a packet comes, whatever its source address
// says: that is what the source and destination check, the route table of the machine's vSwitch and the metadata service go by.
//
// It needs Linux and root, and opens nothing in the namespace of the host.
package vpcnet
