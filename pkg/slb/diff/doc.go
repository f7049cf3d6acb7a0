// Package diff decides which steps turn what a CLB is into what it is to be. It is pure.
package diff
