package clouds

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// Serve serves an emulator with a configuration of its own, nil for the built-in one, and with instances of these ids, and returns its URL.
// It ends with the test.
func Serve(t *testing.T, config *emulator.Config, instances ...string) string {
	t.Helper()
	other, err := emulator.New(emulator.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range instances {
		if _, err := other.PutInstance(id, emulator.InstanceSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(other.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

// Keyed is the built-in configuration with one access key.
func Keyed(id, secret string) *emulator.Config {
	config := cloud.DefaultConfig()
	config.AccessKeys = []cloud.AccessKeyConfig{{ID: id, Secret: secret}}
	return config
}

// Stranger is the account of somebody else with one access key: nothing in it has an ID of the built-in configuration.
func Stranger(id, secret string) *emulator.Config {
	config := Keyed(id, secret)
	for i := range config.VPCs {
		config.VPCs[i].ID += "-stranger"
	}
	for i := range config.VSwitches {
		config.VSwitches[i].ID += "-stranger"
		config.VSwitches[i].VPCID += "-stranger"
	}
	for i := range config.RouteTables {
		config.RouteTables[i].ID += "-stranger"
		config.RouteTables[i].VPCID += "-stranger"
	}
	return config
}

// Regional is the built-in configuration in another region.
func Regional(region string) *emulator.Config {
	config := cloud.DefaultConfig()
	for i := range config.VSwitches {
		config.VSwitches[i].Zone = strings.Replace(config.VSwitches[i].Zone, config.Region, region, 1)
	}
	config.Region = region
	return config
}

// Denied is an account with a key that may not list instances: it is answered with an empty list and HTTP 200.
func Denied(t *testing.T) string {
	t.Helper()
	config := Keyed(cluster.AccessKeyID, cluster.AccessKeySecret)
	config.AccessKeys[0].Permissions = []string{"vpc:*", "slb:*", "ecs:DescribeRegions"}
	return Serve(t, config, "i-stranger1")
}

// Altered serves the emulator at url with other lists in its answers than those that it gives, and returns its URL. counted says that the
// answers count what is left, like those of a cloud that has no more.
func Altered(t *testing.T, url string, counted bool, change func(list []any) []any) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(parse(t, url))
	proxy.ModifyResponse = func(response *http.Response) error {
		var answer map[string]any
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			return err
		}
		alter(answer, counted, change)
		text, err := json.Marshal(answer)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		response.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return err
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// alter changes the lists of an answer, which are objects with nothing but a list.
func alter(answer map[string]any, counted bool, change func([]any) []any) {
	for _, value := range answer {
		object, _ := value.(map[string]any)
		for name, inner := range object {
			list, ok := inner.([]any)
			if !ok || len(object) != 1 {
				continue
			}
			object[name] = change(list)
			if _, has := answer["TotalCount"]; has && counted {
				answer["TotalCount"] = len(change(list))
			}
		}
	}
}
