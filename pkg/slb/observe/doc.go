// Package observe reads what a Service has on a CLB into the model. It writes nothing.
package observe
