// Package testkit holds what tests of several packages share: waiting, unwrapping results, free ports, and Nodes, Services and
// EndpointSlices under construction. Only tests import it. It imports no package of pkg, so that every package's own tests can
// use it; the emulated cloud is in [github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest].
package testkit
