// Package bench measures this project's programs against the goals it has set itself: calls of the cloud's API from the emulator's
// journal, times from clocks, memory and processor time from /proc.
//
// Each scenario runs on a sandbox of its own, with the real control plane, light nodes and the published roles, in a process of its own,
// as a process can hold one control plane only. A missed goal is a figure like any other, and only a run that cannot
// measure is an error. It is not a test; the times depend on the machine and on what else it does.
package bench
