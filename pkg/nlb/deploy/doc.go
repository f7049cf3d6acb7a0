// Package deploy applies plans: it writes to the cloud, and waits for nothing. What a job of the cloud carries out counts as done in the
// model, and the target of the step takes no other step until the job has ended.
package deploy
