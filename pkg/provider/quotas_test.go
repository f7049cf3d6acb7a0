package provider

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// quotaOf is how much of a quota is used, and how much there is.
type quotaOf struct{ used, limit int }

// quotaCluster are four nodes, which all Services have, four Services with CLBs and four with NLBs. The first one of each product has four
// ports, the others one. At least 80 % of each quota is used.
var quotaCluster = map[quota.Code]quotaOf{
	quota.CLBs: {4, 5}, quota.ListenersPerCLB: {4, 5}, quota.BackendsPerCLB: {16, 20}, quota.CLBsPerInstance: {4, 5}, quota.ACLs: {4, 5},
	quota.NLBs: {4, 5}, quota.ListenersPerNLB: {4, 5}, quota.ServersPerNLB: {16, 20}, quota.GroupsPerServer: {7, 8}, quota.NLBGroups: {7, 8},
	quota.RouteEntries: {4, 5},
}

// TestEveryQuotaIsShown: each quota that the manager knows has metrics of its use and its limit, causes a Warning from 80 %, and has a line
// in the report of doctor.
func TestEveryQuotaIsShown(t *testing.T) { //nolint:paralleltest // the metrics are those of the process
	synctest.Test(t, func(t *testing.T) {
		s, warnings := newQuotaCluster(t), &warnings{}
		s.kube.PrependReactor("create", "events", warnings.react)
		s.start()
		defer func() { s.stop() }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		gauges, warned, lines := gaugesOf(t), warnings.all(), s.quotaLines()
		for _, text := range quota.Codes() {
			code := quota.Code(text)
			want, ok := quotaCluster[code]
			if !ok {
				t.Errorf("the test knows no use of %s", code)
			}
			used, limit := "alicloud_quota_used "+text, "alicloud_quota_limit "+text
			if code == quota.RouteEntries {
				used, limit = "alicloud_route_table_entries "+emulatortest.SystemTable, "alicloud_route_table_entries_quota "+emulatortest.SystemTable
			}
			if got := (quotaOf{gauges[used], gauges[limit]}); got != want {
				t.Errorf("%s: metrics %v, want %v", code, got, want)
			}
			if !slices.ContainsFunc(warned, func(w string) bool {
				return strings.Contains(w, text) && strings.Contains(w, fmt.Sprint(want.limit))
			}) {
				t.Errorf("%s: no Warning", code)
			}
			if line := fmt.Sprintf("%d of %d ", want.used, want.limit); !strings.HasPrefix(lines[text], line) {
				t.Errorf("%s: doctor says %q, want %q", code, lines[text], line)
			}
		}
		if t.Failed() {
			t.Logf("warnings:\n%s", strings.Join(warned, "\n"))
		}
	})
}

func newQuotaCluster(t *testing.T) *steadyCluster {
	t.Helper()
	const nodes, services, ports = 4, 4, 4
	s := &steadyCluster{t: t, server: emulatortest.New(t, emulator.Options{}), kube: testkube.NewClientset(), config: keys,
		vSwitches: []string{"vsw-a", "vsw-b"}}
	s.config.BackendSubset, s.config.Quotas = backend.SubsetOff, map[string]int{}
	for code, of := range quotaCluster {
		s.config.Quotas[string(code)] = of.limit
	}
	for i := range nodes {
		s.add(steadyNode(i))
		testkit.Must(s.server.PutInstance(steadyInstance(i), emulator.InstanceSpec{PrivateIP: steadyAddress(i)}))(t)
	}
	for i := range services {
		numbers := []int32{80}
		for port := 1; i == 0 && port < ports; port++ {
			numbers = append(numbers, numbers[0]+int32(port)) //nolint:gosec // ports
		}
		clb := testkube.Service(fmt.Sprint("clb-", i), testkube.TCP(numbers...), testkube.Annotation(annotation.AddressType.Key(), "intranet"))
		clb.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		nlbs := testkube.Service(fmt.Sprint("nlb-", i), testkube.TCP(numbers...), testkube.Class(nlb.Class),
			testkube.Annotation(annotation.ZoneMaps.Key(), "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b"))
		s.add(clb)
		s.add(nlbs)
	}
	return s
}

// warnings are the messages of all Warnings. In simulated time, events have the same names, so that the API server would take one of each
// object.
type warnings struct {
	mu    sync.Mutex // guards found
	found []string
}

func (w *warnings) react(action clienttesting.Action) (bool, runtime.Object, error) {
	event := action.(clienttesting.CreateAction).GetObject().(*corev1.Event) //nolint:forcetypeassert // it is one
	if event.Type == corev1.EventTypeWarning {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.found = append(w.found, event.Reason+": "+event.Message)
	}
	return true, event, nil
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.found)
}

// quotaLines are what doctor says of each quota.
func (s *steadyCluster) quotaLines() map[string]string {
	s.t.Helper()
	e := &examination{Cloud: s.cloud, kube: s.kube, client: s.cloud.client}
	e.vSwitches = testkit.Must(e.client.DescribeVSwitches(s.t.Context(), emulatortest.VPC))(s.t)
	e.routeTables(s.t.Context())
	e.quotas(s.t.Context())
	lines := map[string]string{}
	for _, check := range quotaChecks(e.report) {
		lines[check.Subject] = check.Detail
	}
	return lines
}

// gaugesOf returns the gauges of the process that have one label, by name and value of the label.
func gaugesOf(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, family := range testkit.Must(legacyregistry.DefaultGatherer.Gather())(t) {
		for _, metric := range family.GetMetric() {
			if labels := metric.GetLabel(); len(labels) == 1 && metric.GetGauge() != nil {
				found[family.GetName()+" "+labels[0].GetValue()] = int(metric.GetGauge().GetValue())
			}
		}
	}
	return found
}
