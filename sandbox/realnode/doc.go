// Package realnode runs real machines on Linux: containerd, runc, kubelet, kube-proxy and Flannel, each machine in namespaces of its own
// (network, mounts, processes, host name), with an /etc, /run, /var/lib and /var/log of its own and everything else of the host.
//
// A machine has a first process (ProgramName, as "init"). The kernel ends all processes of a machine with it and gives
// its mounts back, and it dies with the process that started it: so there is nothing that a killed sandbox can leave running. What can
// be left are empty cgroups and files; RemoveLeftovers takes them away.
//
// The package knows nothing of the cloud: the network namespace of a machine comes from outside.
package realnode

// Complaint begins each line that a fleet logs about machines that do not boot or end.
const Complaint = "real machines: "
