// Package clouds leads a running manager to clouds that answer wrongly, and back: to the account of somebody else, to another region, to
// one that shows half of what there is. Tests use it to show that nothing is lost meanwhile.
package clouds
