// Command suite is Kubernetes' end-to-end test program with its specs of networks only: the whole one takes minutes more to build. It
// takes that program's flags, for example --kubeconfig, --host, --ginkgo.focus and --list-tests.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init" // a spec that fails shows the events of its namespace
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init" // and the state of the nodes
	_ "k8s.io/kubernetes/test/e2e/network"             // the specs
)

// outcome is the part of testing.T that Ginkgo needs.
type outcome struct{ failed bool }

func (o *outcome) Fail() { o.failed = true }

// What the specs want to know about the cluster.
var _ = ginkgo.BeforeSuite(func(ctx context.Context) {
	client, err := framework.LoadClientset()
	framework.ExpectNoError(err)
	nodes, err := e2enode.GetReadySchedulableNodes(ctx, client)
	framework.ExpectNoError(err)
	framework.TestContext.CloudConfig.NumNodes = len(nodes.Items)
	framework.TestContext.IPFamily = "ipv4"
})

func main() {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	result := &outcome{}
	ginkgo.RunSpecs(result, "Kubernetes' specs of networks", suite, reporter)
	if result.failed {
		os.Exit(1)
	}
}
