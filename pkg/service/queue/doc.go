// Package queue decides who goes next: the work queue of Services, the most urgent first, and locks by key.
package queue
