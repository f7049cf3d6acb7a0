// Package testkit holds what tests of several packages share: waiting, unwrapping results, free ports, and samples of large matrices. Only
// tests import it. It imports no package of pkg, so that every package's own tests can use it, and nothing that takes long to compile; the
// emulated cloud is in [github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest].
package testkit
