package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/child"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
)

// program returns what runs a component of another release of Kubernetes until its context ends.
func (o Options) program(name string, args []string) func(context.Context) error {
	return func(ctx context.Context) error {
		process, err := child.Start(filepath.Join(o.Programs, name), o.Log, args, nil)
		if err != nil {
			return fmt.Errorf("start %s (hack/kubernetes/build.sh builds it): %w", name, err)
		}
		select {
		case <-process.Done():
			return process.Ended()
		case <-ctx.Done():
			process.Stop()
			return nil
		}
	}
}

// apiServerOfRelease runs the kube-apiserver of another release behind the listener: a process of its own cannot take over the listener,
// with which the sandbox breaks connections.
func apiServerOfRelease(ctx context.Context, opts Options, listener net.Listener, flags []string) (func(context.Context) error, error) {
	port, err := freeport.FindOne(ctx)
	if err != nil {
		return nil, err
	}
	run := opts.program("kube-apiserver", append(flags, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port)))
	return func(ctx context.Context) error {
		defer listener.Close()
		go forward(ctx, listener, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return run(ctx)
	}, nil
}

// forward serves the connections of a listener with those to an address, until the listener is closed.
func forward(ctx context.Context, listener net.Listener, address string) {
	for {
		here, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer here.Close()
			there, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				return // the server does not listen yet, or no more: the client sees a closed connection
			}
			defer there.Close()
			splice(here, bufio.NewReader(here), there)
		}()
	}
}
