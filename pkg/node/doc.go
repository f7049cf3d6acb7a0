// Package node tells Kubernetes what ECS knows about its nodes: it answers the stock node and node-lifecycle controllers
// (cloudprovider.InstancesV2) from a snapshot of the instances that one call per hundred nodes keeps fresh, and it is the
// one reader and writer of provider IDs.
//
// It makes no route, touches no load balancer and writes nothing to ECS. It never says that an instance is gone because
// it could not see it: the guards of [GuardOptions] stand before every such answer.
package node
