// Package deploy holds what a cluster is given: the manifests, rendered from the chart in charts/, and the script that
// makes the configuration. It is embedded, so that tests and the sandbox use exactly the published files, roles included.
// It installs nothing.
package deploy

import "embed"

// Files holds the manifests and cloud-config.sh.
//
//go:embed *.yaml cloud-config.sh
var Files embed.FS
