// Package node connects Nodes with their ECS instances. It answers the stock node and node-lifecycle controllers
// (cloudprovider.InstancesV2) from a snapshot of the instances that one call per hundred nodes keeps fresh, runs a controller
// for what the stock ones leave alone, and is the one reader and writer of provider IDs.
//
// It makes no route, touches no load balancer and writes nothing to ECS. It never reports an instance as gone because it
// could not see it: see [GuardOptions] and [Instances.InstanceExists].
package node
