// Package plot draws line charts, and boards of them, as SVG for the documentation. The same chart gives the same text, so that a test can
// say that a picture is stale.
package plot
