// Package lightnode is a fleet of small kubelets, one for each running instance of the cloud, and the machines' network.
//
// Kubelets registers a Node as a kubelet under --cloud-provider=external does, keeps it Ready with real heartbeats, and brings the pods
// bound to it up, as far as the API shows. Network is what such a machine looks like from outside: its pods answer HTTP with their
// name, and each Service node port forwards to a ready endpoint, over the VPC when that is on another machine.
//
// It runs no containers but those of pods that a Runner takes, reads no images and moves no packets: connections are pipes in memory,
// so that thousands of nodes and pods need no root and no sockets. One loop serves all nodes; nothing polls per node. Pods of a virtual node
// (RunVirtual) have addresses and sockets of the VPC instead.
package lightnode
