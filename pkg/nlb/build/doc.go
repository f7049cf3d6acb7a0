// Package build makes the desired model of an NLB from the Service, its backends and the settings. It is pure.
package build
