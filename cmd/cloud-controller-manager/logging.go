package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
)

// applyLogging applies the logging flags before anything is logged. The stock command does so later: what precedes it would be text among
// lines of JSON. A mistake is left to the stock command, which reports it.
func applyLogging(flags *pflag.FlagSet) {
	config, own := logsapi.NewLoggingConfiguration(), pflag.NewFlagSet("logging", pflag.ContinueOnError)
	logsapi.AddFlags(config, own)
	var err error
	flags.Visit(func(flag *pflag.Flag) {
		if err == nil && own.Lookup(flag.Name) != nil {
			err = own.Set(flag.Name, flag.Value.String())
		}
	})
	if err != nil || len(logsapi.Validate(config, utilfeature.DefaultFeatureGate, nil)) > 0 {
		return
	}
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	// It was valid, and nothing was applied before.
	_ = logsapi.ValidateAndApply(config, utilfeature.DefaultFeatureGate)
}

// debugLevel is the value of --v from which a report shows the log, too.
const debugLevel = 4

// silenceLogs leaves a report alone on the screen: nobody reads it among the log of a program that starts. What fails while it is made is
// said once: it may be why nothing else is printed for minutes. The manager's own flags, which a report takes, often have --v=2.
func silenceLogs(flags *pflag.FlagSet, stderr io.Writer) {
	if level, err := strconv.Atoi(flags.Lookup("v").Value.String()); err == nil && level >= debugLevel {
		applyLogging(flags)
		return
	}
	klog.SetLogger(logr.New(&failures{to: stderr, said: sets.New[string]()}))
}

// failures is a log of which only errors are printed, each once.
type failures struct {
	mu   sync.Mutex // guards the rest
	to   io.Writer
	said sets.Set[string]
}

var _ logr.LogSink = (*failures)(nil)

// Init implements [logr.LogSink].
func (*failures) Init(logr.RuntimeInfo) {}

// Enabled implements [logr.LogSink].
func (*failures) Enabled(int) bool { return false }

// Info implements [logr.LogSink].
func (*failures) Info(int, string, ...any) {}

// Error implements [logr.LogSink].
func (f *failures) Error(err error, msg string, _ ...any) {
	if err != nil {
		msg = fmt.Sprintf("%s: %v", msg, err)
	}
	msg = strings.TrimSpace(msg)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.said.Has(msg) {
		f.said.Insert(msg)
		fmt.Fprintf(f.to, "cloud-controller-manager: %s\n", msg)
	}
}

// WithValues implements [logr.LogSink].
func (f *failures) WithValues(...any) logr.LogSink { return f }

// WithName implements [logr.LogSink].
func (f *failures) WithName(string) logr.LogSink { return f }
