// Command alicloud-emulator serves Alibaba Cloud in memory: OpenAPI, metadata service, admin API and network.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "alicloud-emulator:", err)
		os.Exit(1)
	}
}

// flags are the command line.
type flags struct {
	listen, config string
	options        emulator.Options
}

func parse(args []string) (flags, error) {
	var f flags
	set := pflag.NewFlagSet("alicloud-emulator", pflag.ContinueOnError)
	set.StringVar(&f.listen, "listen", "127.0.0.1:18080", "address of all products, the metadata service and the console")
	set.StringVar(&f.config, "config", "", "YAML file with the region, networks, instances, keys and quotas; built-in default when absent")
	set.DurationVar(&f.options.Latency, "latency", 0, "time added to every OpenAPI call")
	set.DurationVar(&f.options.Settle, "settle", 0, "time that asynchronous states take")
	set.StringVar(&f.options.RateLimits, "rate-limits", emulator.RateLimitsOff, "off, or published: fixed windows per action and account")
	set.BoolVar(&f.options.Fabric, "fabric", false, "listeners of active load balancers accept real connections")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if f.options.Latency < 0 || f.options.Settle < 0 {
		return f, errors.New("--latency and --settle cannot be negative")
	}
	if f.config == "" {
		return f, nil
	}
	var err error
	f.options.Config, err = cloud.LoadConfig(f.config)
	return f, err
}

func run(ctx context.Context, args []string) (err error) {
	f, err := parse(args)
	if err != nil {
		return err
	}
	e, err := emulator.New(f.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", f.listen, err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	return serve(ctx, listener, e.Handler())
}

// shutdownTime is how long requests in flight may take when the program ends.
const shutdownTime = 2 * time.Second

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		// Requests that outlive the limit are cut off: the program was told to end.
		return server.Close()
	}
	return nil
}
