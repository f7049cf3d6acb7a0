// Package mark holds the marks by which load balancers, listeners and server groups are recognized as those of a Service: tags, names
// and descriptions. They are those of the official CCM, so that either program can take over what the other created. It is pure.
package mark
