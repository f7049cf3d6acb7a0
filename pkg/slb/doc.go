// Package slb is the engine for Classic Load Balancers (CLB, formerly SLB), see [driver.Engine].
//
// What is known of the CLB of a Service is kept part by part ([driver.Part]): each part says when it was read and why it is in doubt, and
// one that cannot be read blocks only the steps that depend on it. A pass reads what is in doubt ([clb.Refresh]), builds the wanted
// [model.Model] ([build.Build], pure), makes a [model.Plan] of the difference ([diff.Diff], pure), and carries it out
// ([deploy.Applier]). An unchanged Service costs no call.
//
// It never changes a CLB, listener, vServer group or backend server that does not carry the mark of the Service.
package slb
