package initor

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// metadataService is the part of the service that the initializer reads. It refuses what comes without a token if
// tokensOnly, and answers with status if that is set.
type metadataService struct {
	tokensOnly bool
	status     int
	region, id string
	addresses  []string // of the primary network interface, and of another one
}

func (s *metadataService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const token = "token-1"
	withToken := r.Header.Get("X-aliyun-ecs-metadata-token") == token
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && s.tokensOnly:
		write(w, token)
	case s.tokensOnly && !withToken:
		w.WriteHeader(http.StatusForbidden)
	case r.URL.Path == "/latest/meta-data/instance-id" && r.Method == http.MethodGet:
		write(w, s.id)
	case r.URL.Path == "/latest/meta-data/region-id" && r.Method == http.MethodGet:
		write(w, s.region)
	case r.URL.Path == "/latest/meta-data/private-ipv4" && len(s.addresses) > 0:
		write(w, s.addresses[0])
	case r.URL.Path == "/latest/meta-data/network/interfaces/macs/" && len(s.addresses) > 1:
		write(w, "00:16:3e:00:00:01/")
	case r.URL.Path == "/latest/meta-data/network/interfaces/macs/00:16:3e:00:00:01/"+s.kindOfSecond() && len(s.addresses) > 1:
		write(w, `["`+s.addresses[1]+`"]`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// kindOfSecond is the key that has the second address.
func (s *metadataService) kindOfSecond() string {
	if len(s.addresses) > 1 && strings.Contains(s.addresses[1], ":") {
		return "ipv6s"
	}
	return "private-ipv4s"
}

// TestMetadataOfAnotherMachineIsRefused: behind the NAT of an ECS host the service describes the host.
func TestMetadataOfAnotherMachineIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		instance []string
		node     []string
		refused  bool
	}{
		"same address":                {instance: []string{"10.1.0.11"}, node: []string{"10.1.0.11"}},
		"second network interface":    {instance: []string{"10.1.0.11", "10.2.0.5"}, node: []string{"10.2.0.5"}},
		"container on an instance":    {instance: []string{"10.1.0.11", "10.2.0.5"}, node: []string{"172.18.0.2"}, refused: true},
		"no address reported yet":     {instance: []string{"10.1.0.11"}},
		"IPv6 alone, of the machine":  {instance: []string{"10.1.0.11", "2408:4000::0011"}, node: []string{"2408:4000::11"}},
		"IPv6 alone, of a container":  {instance: []string{"10.1.0.11", "2408:4000::0011"}, node: []string{"fc00:f853::2"}, refused: true},
		"IPv6 alone, none to compare": {instance: []string{"10.1.0.11"}, node: []string{"fc00:f853::2"}, refused: true},
		"the addresses are not read":  {node: []string{"10.1.0.11"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := &metadataService{region: "cn-hangzhou", id: "i-1", addresses: test.instance}
			source := NewMetadataSource(alicloud.NewMetadata(serve(t, service)), fstest.MapFS{})
			id, err := source.Identify(t.Context(), nodeAt("node-1", test.node...))
			if (err != nil) != test.refused || errors.Is(err, ErrNotECS) || (id == testID) == test.refused {
				t.Errorf("%v, %v; want it refused: %t", id, err, test.refused)
			}
		})
	}
}

func write(w http.ResponseWriter, text string) {
	if _, err := w.Write([]byte(text)); err != nil {
		panic(err)
	}
}

func TestMetadataSource(t *testing.T) {
	t.Parallel()
	onECS := fstest.MapFS{productFile: {Data: []byte(ecsProduct + "\n")}}
	elsewhere := fstest.MapFS{productFile: {Data: []byte("PowerEdge R750\n")}}
	for name, test := range map[string]struct {
		service    *metadataService // nil: nobody listens
		machine    fstest.MapFS
		want       node.ProviderID
		wantErr    bool
		wantNotECS bool
	}{
		"token mode": {service: &metadataService{tokensOnly: true, region: "cn-hangzhou", id: "i-1"}, machine: onECS,
			want: testID},
		"plain mode":            {service: &metadataService{region: "cn-hangzhou", id: "i-1"}, machine: elsewhere, want: testID},
		"not reachable":         {machine: elsewhere, wantErr: true, wantNotECS: true},
		"not reachable, no DMI": {machine: fstest.MapFS{}, wantErr: true, wantNotECS: true},
		"not reachable, on ECS": {machine: onECS, wantErr: true},
		"knows no instance": {service: &metadataService{status: http.StatusNotFound}, machine: elsewhere, wantErr: true,
			wantNotECS: true},
		"knows no instance, on ECS":     {service: &metadataService{status: http.StatusNotFound}, machine: onECS, wantErr: true},
		"down":                          {service: &metadataService{status: http.StatusServiceUnavailable}, machine: elsewhere, wantErr: true},
		"a stranger answers everything": {service: &metadataService{region: "<html>", id: "<html>"}, machine: elsewhere, wantErr: true},
		"no region":                     {service: &metadataService{id: "i-1"}, machine: elsewhere, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := NewMetadataSource(alicloud.NewMetadata(serve(t, test.service)), test.machine)
			got, err := source.Identify(t.Context(), nodeWithID(""))
			if got != test.want || (err != nil) != test.wantErr || errors.Is(err, ErrNotECS) != test.wantNotECS {
				t.Errorf("Identify = %+v, %v, want %+v, an error %t, not ECS %t", got, err, test.want, test.wantErr, test.wantNotECS)
			}
		})
	}
}

// serve returns the URL of the service, or one where nobody listens.
func serve(t *testing.T, service *metadataService) string {
	t.Helper()
	server := httptest.NewServer(service)
	if service == nil {
		server.Close()
	} else {
		t.Cleanup(server.Close)
	}
	return server.URL
}
