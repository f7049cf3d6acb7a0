// Command kubectl is kubectl of the sandbox's release of Kubernetes, for machines without one. It is a program of its own because few
// need it, and it takes long to compile.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand())) }
