// Package account holds end-to-end stories that run where a user wants them to: on a cluster of instances of a real account. The same Go
// code runs in the sandbox, with light nodes and with real machines, so that it works before it costs money.
//
// A run says before what it will call and make, and what that may cost. It keeps to one namespace, and [Suite.Clean] removes what it made,
// also when it was killed.
package account
