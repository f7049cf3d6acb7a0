package main

import (
	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// applyLogging applies the logging flags before anything is logged. The stock command does so later: what precedes it would be text among lines of
// JSON. A mistake is left to the stock command, which reports it.
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
