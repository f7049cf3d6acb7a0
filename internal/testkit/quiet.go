package testkit

import (
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// Without -v, a test that fails shows what it says and no log: a controller logs hundreds of lines, and a reader would search the failure
// among them. Programs that a test binary runs as log as ever.
func init() {
	has := func(prefix string) bool {
		return slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, prefix) })
	}
	if !has("-test.") || has("-test.v") {
		return
	}
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	// Above the threshold, klog also writes to standard error.
	if err := errors.Join(flags.Set("logtostderr", "false"), flags.Set("stderrthreshold", "FATAL")); err != nil {
		panic(err)
	}
	klog.SetOutput(io.Discard)
}
