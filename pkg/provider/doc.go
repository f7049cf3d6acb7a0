// Package provider is the cloudprovider.Interface of Alibaba Cloud: it reads the cloud-config file and the environment,
// finds the VPC that the cluster lives in, and wires the engines of pkg/slb, pkg/vpcroute and pkg/node to the cloud client
// and to the cluster's informers.
//
// It holds no rule about load balancers, routes or nodes: those stand in the engines' packages.
package provider
