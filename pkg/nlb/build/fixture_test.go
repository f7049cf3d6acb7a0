package build_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// now is the time of a build.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// key begins the keys of annotations in messages.
const key = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"

// fixture is an input under construction: Service default/web of cluster c1, with the nodes a and b.
type fixture struct {
	svc        *corev1.Service
	nodes      []*corev1.Node
	slices     []*discoveryv1.EndpointSlice
	interfaces map[string]string
	config     config.Config
	observed   *model.Model
	shared     *sharing.Shared
	// applied are annotations that the Service had before.
	applied                                     []string
	removeTags, leaveGroups, removeCertificates []string
}

func newFixture(ports ...int32) *fixture {
	return &fixture{
		svc: testkube.Service("web", testkube.TCP(ports...)), nodes: testkube.Nodes("a", "b"),
		config: config.Config{ClusterID: "c1", VPCID: "vpc-1", ResourceGroupID: "rg-config"},
	}
}

func (f *fixture) build() (*model.Model, []problem.Problem) {
	params, problems := annotation.OfNLB(f.svc)
	built, more := build.Build(build.Input{
		Service: f.svc, Params: params.Revert(f.applied), Config: f.config, ClusterID: f.config.ClusterID, Observed: f.observed,
		Shared: f.shared, RemoveTags: f.removeTags, LeaveGroups: f.leaveGroups, RemoveCertificates: f.removeCertificates,
		Facts: backend.Facts{Nodes: backend.Nodes(f.nodes, testkube.InstanceID, now), Slices: f.slices, Interfaces: f.interfaces},
	})
	return built, append(problems, more...)
}

// row is a Service with the TCP port 80 that is changed, what becomes of it, and all that its author is told: "Reason: message".
type row struct {
	name   string
	change func(*fixture)
	want   []string
	says   []string
}

func checkRows(t *testing.T, lines func(*model.Model) []string, rows []row) {
	t.Helper()
	for _, test := range rows {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(80)
			test.change(f)
			built, problems := f.build()
			if diff := cmp.Diff(test.want, lines(built), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("model (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.says, said(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func said(problems []problem.Problem) []string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Reason+": "+p.Message)
	}
	return lines
}

func plain(*fixture) {}

// set annotates the Service with pairs of a name, without what all begin with, and a value.
func set(pairs ...string) func(*fixture) {
	return func(f *fixture) {
		for i := 0; i < len(pairs); i += 2 {
			f.svc.Annotations[key+pairs[i]] = pairs[i+1]
		}
	}
}

func all(changes ...func(*fixture)) func(*fixture) {
	return func(f *fixture) {
		for _, change := range changes {
			change(f)
		}
	}
}

// port adds a port to the Service.
func port(number int32, protocol corev1.Protocol) func(*fixture) {
	return func(f *fixture) { f.svc.Spec.Ports = append(f.svc.Spec.Ports, testkube.Port(number, protocol)) }
}

// udp makes the port of the Service one of UDP.
func udp(f *fixture) { f.svc.Spec.Ports = []corev1.ServicePort{testkube.Port(80, corev1.ProtocolUDP)} }

// pods makes two pods the backends.
func pods(f *fixture) {
	f.svc.Annotations[annotation.BackendType] = "eni"
	f.interfaces = map[string]string{"10.9.0.1": "eni-1", "10.9.0.2": "eni-2"}
	endpoints("10.9.0.1@a", "10.9.0.2@b")(f)
}

// endpoints are those of the first port.
func endpoints(items ...string) func(*fixture) {
	return func(f *fixture) {
		f.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", f.svc.Spec.Ports[0], items...)}
	}
}

// removed has annotations that the Service has no more.
func removed(names ...string) func(*fixture) {
	return func(f *fixture) {
		for _, name := range names {
			f.applied = append(f.applied, "loadbalancer-"+name)
		}
	}
}

// there returns the model that is there, which is made the first time: an NLB that was created for the Service.
func (f *fixture) there() *model.Model {
	if f.observed == nil {
		f.observed = &model.Model{LoadBalancer: alicloud.NLB{
			ID: "nlb-1", VPCID: "vpc-1", Status: alicloud.NLBActive, AddressType: alicloud.NLBInternet, AddressIPVersion: alicloud.NLBIPv4,
			ResourceGroupID: "rg-config", Zones: []alicloud.NLBZone{
				{ZoneID: "z-a", VSwitchID: "vsw-a", PrivateIPv4: "10.0.0.1", AllocationID: "eip-a"}, {ZoneID: "z-b", VSwitchID: "vsw-b",
					PrivateIPv4: "10.0.1.1"},
			},
		}}
	}
	return f.observed
}

// existing says that the NLB is there, changed.
func existing(changes ...func(*model.Model)) func(*fixture) {
	return func(f *fixture) {
		for _, change := range changes {
			change(f.there())
		}
		f.there()
	}
}

// reused says that the Service names somebody else's NLB by id.
func reused(changes ...func(*model.Model)) func(*fixture) {
	return all(set("id", "nlb-1"), existing(func(m *model.Model) { m.Reused = true }), existing(changes...))
}

// overriding says that the Service manages the listeners of that NLB, too.
func overriding(changes ...func(*model.Model)) func(*fixture) {
	return all(set("force-override-listeners", "true"), reused(changes...))
}

// mark is the mark of the Service, of which lines show only the beginning.
func mark(text string) string { return "k8s." + text + markEnd }

const markEnd = ".web.default.c1"

func short(text string) string { return strings.TrimSuffix(strings.TrimPrefix(text, "k8s."), markEnd) }

// compact returns what a value says as data: fields that are not zero, and what pointers point to, also where that is zero.
func compact(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		return compact(v.Elem())
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue
			}
			value := compact(v.Field(i))
			if inner, ok := value.(map[string]any); ok && v.Type().Field(i).Anonymous {
				maps.Copy(fields, inner)
				continue
			}
			fields[v.Type().Field(i).Name] = value
		}
		return fields
	case reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = compact(v.Index(i))
		}
		return items
	case reflect.Map: // a set
		var keys []string
		for _, k := range v.MapKeys() {
			keys = append(keys, k.String())
		}
		slices.Sort(keys)
		return keys
	}
	return v.Interface()
}

// fields are those of a struct that say something, as "Name=value".
func fields(v any, without ...string) []string {
	found, _ := compact(reflect.ValueOf(v)).(map[string]any)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(without, name) {
			lines = append(lines, fmt.Sprintf("%s=%v", name, found[name]))
		}
	}
	return lines
}

func line(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// listenerLines shows the listeners of a model: protocol, port and group, then settings.
func listenerLines(m *model.Model) []string {
	var lines []string
	for i := range m.Listeners {
		l := &m.Listeners[i]
		text := line(l.Protocol, l.Ports(), "->", short(l.Group), strings.Join(fields(l.NLBListenerSettings, "Description"), " "))
		for _, list := range []struct {
			name string
			ids  []string
		}{{"Certificates", l.Certificates}, {"RemoveCertificates", l.RemoveCertificates}} {
			if len(list.ids) > 0 {
				text += fmt.Sprintf(" %s=%v", list.name, list.ids)
			}
		}
		lines = append(lines, line(text, prefixed("blocked: ", l.Blocked)))
	}
	return lines
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// groupLines shows the groups of a model without their servers.
func groupLines(m *model.Model) []string {
	var lines []string
	for i := range m.Groups {
		g := &m.Groups[i]
		lines = append(lines, line(short(g.Name), strings.Join(fields(struct {
			Type, AddressIPVersion, Affinity string
			AnyPort, KeepWeights             bool
			alicloud.NLBGroupSettings
		}{g.Type, g.AddressIPVersion, g.Affinity, g.AnyPort, g.KeepWeights, g.NLBGroupSettings}), " ")))
	}
	return lines
}

// serverLines shows the servers of the groups of a model, and of those that listeners are to leave.
func serverLines(m *model.Model) []string {
	var lines []string
	show := func(prefix string, groups []model.Group) {
		for i := range groups {
			g := &groups[i]
			for k := range g.Servers {
				lines = append(lines, line(prefix, serverLine(&g.Servers[k])))
			}
			for k := range g.Draining {
				lines = append(lines, line(prefix, "draining", serverLine(&g.Draining[k])))
			}
			if g.Doubt {
				lines = append(lines, line(prefix, fmt.Sprintf("doubt, gone %v", slices.Sorted(maps.Keys(g.Gone)))))
			}
			if len(g.Held) > 0 {
				lines = append(lines, line(prefix, fmt.Sprintf("held %v", slices.Sorted(maps.Keys(g.Held)))))
			}
		}
	}
	show("", m.Groups)
	show("former", m.Former)
	if len(m.Dead) > 0 {
		lines = append(lines, fmt.Sprintf("dead %v", slices.Sorted(maps.Keys(m.Dead))))
	}
	return lines
}

func serverLine(s *alicloud.NLBServer) string {
	name := s.ID
	if s.IP != "" && s.IP != s.ID {
		name += "/" + s.IP
	}
	return fmt.Sprintf("%s %s:%d weight %d", s.Type, name, s.Port, s.Weight)
}
