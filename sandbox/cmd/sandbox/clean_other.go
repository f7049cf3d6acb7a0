//go:build !linux

package main

import "github.com/spf13/cobra"

// platformCommands are those that only Linux has.
func platformCommands() []*cobra.Command { return nil }
