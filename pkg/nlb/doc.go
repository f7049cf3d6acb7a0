// Package nlb is the engine for Network Load Balancers: what is known of one, part by part, and how it is read, planned and written.
//
// Most writes of NLB only begin something. A pass that has to wait for a job ends, and one poller for all Services wakes it.
package nlb
