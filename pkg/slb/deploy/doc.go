// Package deploy carries out plans: it writes to the cloud, and keeps the model in step with every write that succeeded.
package deploy
