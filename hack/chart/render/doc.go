// Package render renders the chart as "helm template" does, makes what is made from the chart's values, and tests both. Of Helm it imports
// only what that needs, because compiling the rest takes minutes: a change of the chart is tested before anything is installed.
package render
