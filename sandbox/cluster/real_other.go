//go:build !linux

package cluster

import (
	"context"
	"errors"
)

func newRealNodes(context.Context, Options, *files) (nodes, error) {
	return nil, errors.New("real nodes need Linux: light ones run everywhere")
}
