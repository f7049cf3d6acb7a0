//go:build !linux

package main

import "github.com/spf13/cobra"

// nodePrograms is empty: real machines are Linux.
var nodePrograms map[string]func() *cobra.Command
