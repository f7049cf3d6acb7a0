package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
)

// A full cloud, and what the emulator may take for it.
const (
	fullInstances     = 10_000
	fullBalancers     = 2_000
	groupsPerBalancer = 2
	backendsPerGroup  = 50
	backendsPerCall   = 40
	fullMiB           = 1024

	connections  = 8
	floodTime    = 5 * time.Second
	readsPerSec  = 10_000
	writesPerSec = 1500

	startMillis, startedMiB = 100, 30
	// starts is how often the start is measured; the shortest counts, because others wait for a processor.
	starts = 5
)

// group is a vServer group of the full cloud.
type group struct{ balancer, id string }

// emulatorSpeed measures the emulator as a program of its own. The client shares the machine with it.
func emulatorSpeed(ctx context.Context, r run) (figures []Figure, err error) {
	config, err := writeFullConfig(r)
	if err != nil {
		return nil, err
	}
	port, err := freeport.FindOne(ctx)
	if err != nil {
		return nil, err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	p, err := startProcess(ctx, r.path("emulator.log"), r.program("alicloud-emulator"), []string{"--listen", listen, "--config", config}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop(ctx)) }()
	c := newCaller("http://"+listen, "bench-", connections)
	defer c.close()
	if err = untilHealthy(ctx, p, c); err != nil {
		return nil, err
	}
	begin := time.Now()
	groups, err := fill(ctx, c)
	if err != nil {
		return nil, err
	}
	r.say("%d load balancers, %d groups after %.1f s", fullBalancers, len(groups), time.Since(begin).Seconds())
	mib, err := residentMiB(p.pid())
	if err != nil {
		return nil, err
	}
	figures, err = emulatorStart(ctx, r)
	if err != nil {
		return nil, err
	}
	figures = append(figures, atMost(fmt.Sprintf("emulator with %d CLBs, %d groups, %d backends, %d instances: resident memory",
		fullBalancers, len(groups), len(groups)*backendsPerGroup, fullInstances), mib, "MiB", fullMiB))
	speeds, err := speeds(ctx, c, groups)
	return append(figures, speeds...), err
}

// emulatorStart measures a start with the built-in configuration until the first answer, and what the process then needs.
func emulatorStart(ctx context.Context, r run) ([]Figure, error) {
	shortest, mib := time.Hour, 0.0
	for range starts {
		port, err := freeport.FindOne(ctx)
		if err != nil {
			return nil, err
		}
		listen := fmt.Sprintf("127.0.0.1:%d", port)
		begin := time.Now()
		p, err := startProcess(ctx, r.path("start.log"), r.program("alicloud-emulator"), []string{"--listen", listen}, nil)
		if err != nil {
			return nil, err
		}
		err = untilConnected(ctx, listen)
		shortest = min(shortest, time.Since(begin))
		if err == nil {
			mib, err = residentMiB(p.pid())
		}
		if err = errors.Join(err, p.stop(ctx)); err != nil {
			return nil, err
		}
	}
	return []Figure{
		atMost("emulator: start until it answers, the shortest of five", float64(shortest.Microseconds())/1000, "ms", startMillis),
		atMost("emulator: resident memory after the start", mib, "MiB", startedMiB),
	}, nil
}

// untilConnected waits until somebody accepts connections.
func untilConnected(ctx context.Context, listen string) error {
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, untilTimeout, true, func(ctx context.Context) (bool, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", listen)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return true, conn.Close()
	})
	if err != nil {
		return fmt.Errorf("wait for the emulator: %w", err)
	}
	return nil
}

// speeds measures a read and a write on the full cloud. The requests of the read are signed before, so that the emulator has the
// processors.
func speeds(ctx context.Context, c *caller, groups []group) ([]Figure, error) {
	reads, err := floodSigned(ctx, c, func(i int) api.Params {
		return api.Params{"Action": "DescribeLoadBalancerAttribute", "LoadBalancerId": groups[i%len(groups)].balancer}
	})
	if err != nil {
		return nil, err
	}
	writes, err := flood(ctx, func(ctx context.Context, i int) error {
		_, failed := c.call(ctx, api.Params{
			"Action": "AddVServerGroupBackendServers", "VServerGroupId": groups[i%len(groups)].id, "BackendServers": backends(i, 1),
		})
		return failed
	})
	if err != nil {
		return nil, err
	}
	return []Figure{
		rateAtLeast(fmt.Sprintf("emulator: DescribeLoadBalancerAttribute over %d connections, signatures verified", connections), reads, readsPerSec),
		rateAtLeast(fmt.Sprintf("emulator: AddVServerGroupBackendServers over %d connections, signatures verified, client included", connections), writes, writesPerSec),
	}, nil
}

// flood makes calls over all connections for a while and returns how many a second were answered.
func flood(ctx context.Context, call func(ctx context.Context, i int) error) (float64, error) {
	var counts [connections]int
	begin := time.Now()
	workers, ctx := errgroup.WithContext(ctx)
	for worker := range connections {
		workers.Go(func() error {
			for i := worker; time.Since(begin) < floodTime; i += connections {
				if err := call(ctx, i); err != nil {
					return err
				}
				counts[worker]++
			}
			return nil
		})
	}
	err := workers.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(begin).Seconds(), err
}

// writeFullConfig writes the configuration of the full cloud: quotas and instances. Everything else is made by calls.
func writeFullConfig(r run) (string, error) {
	config := cloud.DefaultConfig()
	config.Quotas.LoadBalancers = fullBalancers
	for i := range fullInstances {
		config.Instances = append(config.Instances, cloud.InstanceConfig{ID: instanceID(i)})
	}
	content, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("encode the emulator's configuration: %w", err)
	}
	path := r.path("emulator.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write the emulator's configuration: %w", err)
	}
	return path, nil
}

func instanceID(i int) string { return fmt.Sprintf("i-%d", i%fullInstances) }

// fill creates load balancers and groups with their backend servers.
func fill(ctx context.Context, c *caller) ([]group, error) {
	groups := make([]group, fullBalancers*groupsPerBalancer)
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(connections)
	for i := range fullBalancers {
		workers.Go(func() error {
			lb, err := c.call(ctx, api.Params{"Action": "CreateLoadBalancer", "AddressType": "intranet", "VSwitchId": "vsw-a"})
			if err != nil {
				return err
			}
			for j := range groupsPerBalancer {
				n := i*groupsPerBalancer + j
				if groups[n], err = fillGroup(ctx, c, lb.LoadBalancerID, n*backendsPerGroup); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return groups, workers.Wait()
}

// fillGroup creates a group and adds backend servers to it, as many a call as the cloud takes.
func fillGroup(ctx context.Context, c *caller, balancer string, first int) (group, error) {
	created, err := c.call(ctx, api.Params{"Action": "CreateVServerGroup", "LoadBalancerId": balancer})
	if err != nil {
		return group{}, err
	}
	for n := 0; n < backendsPerGroup; n += backendsPerCall {
		_, err := c.call(ctx, api.Params{
			"Action": "AddVServerGroupBackendServers", "VServerGroupId": created.VServerGroupID,
			"BackendServers": backends(first+n, min(backendsPerCall, backendsPerGroup-n)),
		})
		if err != nil {
			return group{}, err
		}
	}
	return group{balancer: balancer, id: created.VServerGroupID}, nil
}

// backends are n backend servers from the first-th instance on.
func backends(first, n int) string {
	type backend struct {
		ServerId string //nolint:revive // the name on the wire
		Port     int
	}
	list := make([]backend, n)
	for i := range list {
		list[i] = backend{ServerId: instanceID(first + i), Port: appPort}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return string(text)
}

// untilHealthy waits for the emulator to answer.
func untilHealthy(ctx context.Context, p *process, c *caller) error {
	err := wait.PollUntilContextTimeout(ctx, poll, untilTimeout, true, func(ctx context.Context) (bool, error) {
		if err := p.ended(); err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/healthz", nil)
		if err != nil {
			return false, err
		}
		response, err := c.client.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("wait for the emulator: %w", err)
	}
	return nil
}
