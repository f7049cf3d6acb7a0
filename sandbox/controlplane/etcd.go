package controlplane

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdQuota holds the objects of some ten thousand nodes and their pods; etcd's default of 2 GiB is too tight for scale tests.
const etcdQuota = 4 << 30

// etcdTimeout bounds a start on a busy machine; an idle one needs half a second.
const etcdTimeout = 30 * time.Second

// startEtcd runs a single etcd member on a unix socket inside dir and returns it with its client endpoint.
func startEtcd(ctx context.Context, dir string, opts Options) (*embed.Etcd, string, error) {
	socket := (&url.URL{Scheme: "unix", Path: filepath.Join(filepath.Dir(dir), "etcd.sock")}).String()
	config := embed.NewConfig()
	config.Dir = dir
	// The data need not survive the process: synchronous writes would only cost start-up time.
	config.UnsafeNoFsync = true
	config.QuotaBackendBytes = etcdQuota
	config.GRPCAdditionalServerOptions = opts.Trouble.etcdOptions()
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(zapcore.NewCore(
		zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(opts.Log), zapcore.ErrorLevel)))
	config.ListenClientUrls = mustURLs(socket)
	config.ListenPeerUrls = mustURLs("http://127.0.0.1:0")
	// Advertised addresses must be host:port, but nobody dials them: a single member has no peers and its only client is given
	// the socket.
	config.AdvertiseClientUrls = mustURLs("http://127.0.0.1:2379")
	config.AdvertisePeerUrls = mustURLs("http://127.0.0.1:2380")
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", fmt.Errorf("start etcd: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, socket, nil
	case err = <-etcd.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	etcd.Close()
	return nil, "", fmt.Errorf("wait for etcd to be ready: %w", err)
}

// mustURLs parses addresses that this file composes itself.
func mustURLs(address string) []url.URL {
	parsed, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return []url.URL{*parsed}
}
