// Command alicloud-emulator serves Alibaba Cloud in memory: OpenAPI, metadata service, admin API and network.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/buildinfo"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	command, args := run, os.Args[1:]
	if len(args) > 0 && args[0] == "conformance" {
		command, args = runConformance, args[1:]
	}
	err := command(ctx, args, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "alicloud-emulator:", err)
		os.Exit(1)
	}
}

// Environment variables that set the defaults of flags. The image sets them, because in a container, loopback is the container's own.
const (
	envListen       = "ALICLOUD_EMULATOR_LISTEN"
	envAdminClients = "ALICLOUD_EMULATOR_ADMIN_CLIENTS"
)

// Values of --admin-clients.
const (
	adminLoopback = "loopback"
	adminAny      = "any"
)

// flags are the command line.
type flags struct {
	listen, config, journal string
	adminClients            string
	certificate, key        string
	options                 emulator.Options
	version                 bool
}

func parse(args []string) (flags, error) {
	var f flags
	set := pflag.NewFlagSet("alicloud-emulator", pflag.ContinueOnError)
	set.StringVar(&f.listen, "listen", cmp.Or(os.Getenv(envListen), "127.0.0.1:18080"),
		"address of all products, the metadata service and the console (default also from "+envListen+")")
	set.StringVar(&f.adminClients, "admin-clients", cmp.Or(os.Getenv(envAdminClients), adminLoopback),
		"who may use the admin API and the console, which need no key: loopback, or any (default also from "+envAdminClients+")")
	set.StringVar(&f.config, "config", "", "YAML file with the region, networks, instances, keys and quotas (default: built in)")
	set.DurationVar(&f.options.Latency, "latency", 0, "time to add to every OpenAPI call")
	set.DurationVar(&f.options.Settle, "settle", 0, "duration of asynchronous state changes")
	set.StringVar(&f.options.RateLimits, "rate-limits", emulator.RateLimitsOff,
		"off, or published: the published limits, in fixed windows per action and account")
	set.BoolVar(&f.options.Fabric, "fabric", false, "listeners of active load balancers accept real connections")
	set.StringVar(&f.journal, "journal", "", "file to append every call to, as one line of JSON")
	set.StringVar(&f.options.Snapshot, "snapshot", "", "file to restore all resources from at the start, and to save them to at the end")
	set.StringVar(&f.certificate, "tls-cert", "", "PEM file of a certificate, to serve HTTPS instead of HTTP (with --tls-key)")
	set.StringVar(&f.key, "tls-key", "", "PEM file of the private key of the certificate")
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if f.options.Latency < 0 || f.options.Settle < 0 {
		return f, errors.New("--latency and --settle cannot be negative")
	}
	if !slices.Contains([]string{adminLoopback, adminAny}, f.adminClients) {
		return f, fmt.Errorf("--admin-clients %q: accepted are %s and %s", f.adminClients, adminLoopback, adminAny)
	}
	f.options.OpenAdmin = f.adminClients == adminAny
	if (f.certificate == "") != (f.key == "") {
		return f, errors.New("--tls-cert and --tls-key are needed together")
	}
	if f.config == "" {
		return f, nil
	}
	var err error
	f.options.Config, err = cloud.LoadConfig(f.config)
	return f, err
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	f, err := parse(args)
	if err != nil {
		return err
	}
	if f.version {
		_, err = fmt.Fprintln(out, buildinfo.Line("alicloud-emulator", buildinfo.Version()))
		return err
	}
	if f.journal != "" {
		file, openErr := os.OpenFile(f.journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if openErr != nil {
			return fmt.Errorf("--journal: %w", openErr)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		f.options.Journal = file
	}
	e, err := emulator.NewAccounts(f.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	listener, scheme, err := listen(ctx, f)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on %s://%s\n", scheme, listener.Addr())
	return serve(ctx, listener, e.Handler())
}

// listen opens the one port, with TLS when a certificate is named.
func listen(ctx context.Context, f flags) (net.Listener, string, error) {
	var c *tls.Config
	if f.certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
		if err != nil {
			return nil, "", fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.certificate, f.key, err)
		}
		c = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, "", fmt.Errorf("--listen %s: %w", f.listen, err)
	}
	if c == nil {
		return l, "http", nil
	}
	return tls.NewListener(l, c), "https", nil
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
		// Requests that outlive the limit are cut off: the program was asked to end.
		return server.Close()
	}
	return nil
}
