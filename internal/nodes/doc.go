// Package nodes reads Node objects: who a node is, whether it takes part, and what state it is in. Every part of the program
// answers such a question here, so that no two of them disagree about the same node.
//
// All functions are pure: they read one object and neither change nor keep it. Times that depend on the clock take it from
// the caller.
package nodes
