package emulator_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// crowd fills an emulator with many load balancers, one group with backend servers each, and returns their ids.
func crowd(b *testing.B, n int) (e *emulator.Emulator, lbs, groups []string) {
	b.Helper()
	config := cloud.DefaultConfig()
	config.Quotas.LoadBalancers, config.Quotas.LBsPerInstance = n, n
	e, err := emulator.New(emulator.Options{Config: config, JournalLimit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	for i := range 100 {
		if _, err := e.PutInstance(fmt.Sprintf("i-%d", i), emulator.InstanceSpec{}); err != nil {
			b.Fatal(err)
		}
	}
	// The crowd comes through the same door as everybody.
	for i := range n {
		nonce := fmt.Sprintf("crowd-%d", i)
		lb := created(b, e, nonce, "LoadBalancerId", api.Params{"Action": "CreateLoadBalancer", "AddressType": "intranet", "VSwitchId": "vsw-a"})
		lbs = append(lbs, lb)
		groups = append(groups, created(b, e, nonce+"g", "VServerGroupId", api.Params{"Action": "CreateVServerGroup", "LoadBalancerId": lb}))
	}
	return e, lbs, groups
}

func slbCall(nonce string, params api.Params) string {
	return "/?" + encode(signed("GET", nonce, func(p api.Params) {
		p["Version"] = "2014-05-15"
		maps.Copy(p, params)
	}))
}

func created(b *testing.B, e *emulator.Emulator, nonce, field string, params api.Params) string {
	b.Helper()
	status, body := send(e, "GET", slbCall(nonce, params), "")
	if status != http.StatusOK {
		b.Fatal(body)
	}
	return fieldOf(b, body, field)
}

// flood sends calls over 8 connections and reports calls a second.
func flood(b *testing.B, e *emulator.Emulator, params func(i int64) api.Params) {
	b.Helper()
	server := httptest.NewServer(e.Handler())
	defer server.Close()
	client := server.Client()
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = 8
	var n atomic.Int64
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			i := n.Add(1)
			response, err := client.Get(server.URL + slbCall(fmt.Sprint(i), params(i)))
			if err != nil {
				b.Error(err)
				return
			}
			body, err := io.ReadAll(response.Body)
			if closeErr := response.Body.Close(); err != nil || closeErr != nil || response.StatusCode != http.StatusOK {
				b.Errorf("%d %s %v %v", response.StatusCode, body, err, closeErr)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkDescribeLoadBalancerAttribute has the goal of 3,000 calls/s on 2 cores, the client included.
func BenchmarkDescribeLoadBalancerAttribute(b *testing.B) {
	e, lbs, _ := crowd(b, 200)
	flood(b, e, func(i int64) api.Params {
		return api.Params{"Action": "DescribeLoadBalancerAttribute", "LoadBalancerId": lbs[i%int64(len(lbs))]}
	})
}

// BenchmarkAddVServerGroupBackendServers has the goal of 1,500 calls/s on 2 cores, the client included.
func BenchmarkAddVServerGroupBackendServers(b *testing.B) {
	e, _, groups := crowd(b, 200)
	flood(b, e, func(i int64) api.Params {
		return api.Params{
			"Action": "AddVServerGroupBackendServers", "VServerGroupId": groups[i%int64(len(groups))],
			"BackendServers": fmt.Sprintf(`[{"ServerId":"i-%d","Port":80}]`, i%100),
		}
	})
}
