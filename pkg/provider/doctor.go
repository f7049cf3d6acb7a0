package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/leadership"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// maxSkew is how far the clocks may differ. The cloud refuses calls from fifteen minutes on; a machine that keeps its clock
// is never off by one.
const maxSkew = time.Minute

// examination is one check-up. What an earlier check found out serves the later ones.
type examination struct {
	*Cloud
	kube   kubernetes.Interface // nil where it does not answer
	report doctor.Report

	client    *alicloud.Client   // nil without usable settings
	reachable bool               // the cloud has accepted the key
	vSwitches []alicloud.VSwitch // of the VPC
	// routeEntries is how many custom entries the fullest managed route table has.
	routeEntries int
}

// Examine checks what can be wrong with an installation, cloud first. unreachable says why the API server cannot be asked,
// nil where it can. Nothing is changed, and no check ends the examination.
func (c *Cloud) Examine(ctx context.Context, kube kubernetes.Interface, unreachable error) doctor.Report {
	e := &examination{Cloud: c}
	if unreachable != nil {
		e.add("cluster", "API server", doctor.Wrong, unreachable.Error(), "correct --kubeconfig, or check the API server")
	} else {
		e.kube = kube
	}
	e.settingsAndKeys(ctx)
	if e.client != nil {
		e.clock(ctx)
		e.network(ctx)
	}
	if e.reachable {
		e.routeTables(ctx)
		e.permissions(ctx)
		e.quotas(ctx)
	} else {
		e.add("permissions", "RAM actions", doctor.NotChecked, "without a cloud that accepts the key", "")
	}
	e.cluster(ctx)
	return e.report
}

func (e *examination) add(area, subject string, status doctor.Status, detail, fix string) {
	e.report.Add(doctor.Check{Area: area, Subject: subject, Status: status, Detail: detail, Fix: fix})
}

// features are those that the settings switch on.
func (e *examination) features() []alicloud.Feature {
	features := []alicloud.Feature{alicloud.FeatureNodes}
	if !e.settings.WithoutCLB {
		features = append(features, alicloud.FeatureServices)
	}
	if len(e.settings.ClusterCIDRs) > 0 {
		features = append(features, alicloud.FeatureRoutes)
	}
	return features
}

func (e *examination) settingsAndKeys(ctx context.Context) {
	client, err := e.connect(ctx)
	if err != nil {
		e.add("cloud", "settings", doctor.Wrong, err.Error(), "correct what the line names")
		return
	}
	e.client = client
	e.add("cloud", "settings", doctor.OK, "region "+client.Region(), "")
	if e.env.PlainHTTP {
		e.add("cloud", "encryption", doctor.Optional, "calls to the cloud go over plain HTTP, and temporary keys with them", "unset "+envScheme+", which is for tests")
	}
	e.add("cloud", "policy", doctor.OK, e.policy().String(), "")
	if unknown := e.config.Unknown; len(unknown) > 0 {
		e.add("cloud", "cloud-config", doctor.Optional, "unknown fields have no effect: "+strings.Join(unknown, ", "), "check their spelling, or remove them")
	}
	if e.config.Paused {
		e.add("cloud", "pause", doctor.Wrong, "Global.paused of the cloud-config keeps the manager from writing to the cloud", "set it to false once the manager may write again")
	}
	if _, err := e.credentials.Credentials(ctx); err != nil {
		e.add("cloud", "credentials", doctor.Wrong, err.Error(), "correct "+e.keySource+", or set up another source: docs/reference/credentials.md")
		return
	}
	e.add("cloud", "credentials", doctor.OK, "from "+e.keySource, "")
}

// connect returns a client that the cloud's audit log shows as one of this cluster, as far as its ID is known.
func (e *examination) connect(ctx context.Context) (*alicloud.Client, error) {
	if err := e.checkSettings(); err != nil {
		return nil, err
	}
	if e.clusterID = e.config.ClusterID; e.kube != nil {
		e.clusterID, _ = clusterID(ctx, e.clusterID, e.kube) // without it, the calls work as well
	}
	return e.newClient(ctx)
}

func (e *examination) clock(ctx context.Context) {
	asked := time.Now()
	theirs, err := e.client.ServerTime(ctx)
	if err != nil {
		e.add("cloud", "clock", doctor.NotChecked, err.Error(), "")
		return
	}
	// The header counts whole seconds, and the answer takes its time.
	skew := theirs.Sub(asked).Round(10 * time.Second)
	if skew.Abs() > maxSkew {
		e.add("cloud", "clock", doctor.Wrong, fmt.Sprintf("the cloud's clock is %s from this machine's", skew), "synchronize the clock of the machine with NTP (chrony, systemd-timesyncd)")
		return
	}
	e.add("cloud", "clock", doctor.OK, fmt.Sprintf("within %s of the cloud's", maxSkew), "")
}

// network finds the VPC as the manager does, and with its vSwitches proves key, region and VPC.
func (e *examination) network(ctx context.Context) {
	vpcID, from := e.config.VPCID, "cloud-config"
	if vpcID == "" {
		here, err := e.whereabouts(ctx)
		if err != nil {
			e.add("cloud", "VPC", doctor.Wrong, err.Error(), "set Global.vpcid in the cloud-config")
			return
		}
		vpcID, from = here.vpcID, "the machines"
	}
	vSwitches, err := e.client.DescribeVSwitches(ctx, vpcID)
	switch {
	case alicloud.IsForbidden(err):
		e.reachable = true
		e.add("cloud", "VPC", doctor.NotChecked, vpcID+": vpc:DescribeVSwitches is denied", "")
	case err != nil:
		err = e.explainRegion(ctx, e.kube, e.client.Region(), e.explain(e.client.Region(), vpcID, err))
		e.add("cloud", "VPC", doctor.Wrong, err.Error(), "correct what the line names")
	case len(vSwitches) == 0:
		e.reachable = true
		err = e.explainRegion(ctx, e.kube, e.client.Region(), fmt.Errorf("%s has no vSwitch in region %s", vpcID, e.client.Region()))
		e.add("cloud", "VPC", doctor.Wrong, err.Error(), "correct Global.vpcid and Global.region in the cloud-config")
	default:
		e.reachable, e.vSwitches = true, vSwitches
		e.place.vpcID = vpcID
		e.add("cloud", "VPC", doctor.OK, fmt.Sprintf("%s from %s, %d vSwitches", vpcID, from, len(vSwitches)), "")
		e.configuredVSwitches()
		e.account(ctx)
	}
}

// account compares the account of the key with that of this machine: in a VPC that accounts share, a key of another one sees the vSwitches,
// and neither instances nor load balancers of the cluster.
func (e *examination) account(ctx context.Context) {
	owner, err := e.metadata.OwnerAccountID(ctx)
	if err != nil {
		return // this may be no machine of the cluster
	}
	account, err := e.client.AccountID(ctx)
	switch {
	case err != nil:
		e.add("cloud", "account", doctor.NotChecked, err.Error(), "")
	case account != owner:
		e.add("cloud", "account", doctor.Wrong, fmt.Sprintf("the access key belongs to account %s, and this machine to account %s", account, owner),
			"use a key of the account that the cluster's instances and load balancers are in")
	default:
		e.add("cloud", "account", doctor.OK, account+", as this machine", "")
	}
}

// whereabouts needs the cluster, where the metadata service does not know.
func (e *examination) whereabouts(ctx context.Context) (place, error) {
	if e.kube == nil {
		return e.locateByMetadata(ctx, e.client.Region())
	}
	return e.locate(ctx, e.client, e.kube)
}

func (e *examination) configuredVSwitches() {
	known := map[string]bool{}
	for i := range e.vSwitches {
		known[e.vSwitches[i].ID] = true
	}
	for _, id := range e.config.VSwitchIDs {
		if !known[id] {
			e.add("cloud", "vSwitch "+id, doctor.Wrong, "it is not in "+e.place.vpcID, "correct Global.vswitchid in the cloud-config")
		}
	}
}

// cluster checks what the API server knows.
func (e *examination) cluster(ctx context.Context) {
	if e.kube == nil {
		e.add("nodes", "all", doctor.NotChecked, "the API server does not answer", "")
		return
	}
	e.report.Add(doctor.Rights(ctx, e.kube, e.rights(ctx))...)
	e.report.Add(doctor.KeyReaders(ctx, e.kube))
	e.officialManager(ctx)
	e.pausedServices(ctx)
	list, err := e.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		e.add("nodes", "list", doctor.NotChecked, err.Error(), "")
		return
	}
	nodes := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		nodes[i] = &list.Items[i]
	}
	e.report.Add(doctor.ProviderIDs(nodes, e.findings(ctx, nodes), waits)...)
	e.networks(nodes)
	if e.client != nil {
		e.unserved(nodes)
	}
	if len(e.settings.ClusterCIDRs) > 0 && e.client != nil {
		ours := node.InstanceIDOf(e.client.Region())
		e.report.Add(doctor.PodCIDRs(nodes, e.settings.ClusterCIDRs, func(n *corev1.Node) bool {
			_, err := ours(n)
			return err == nil
		})...)
	}
}

// officialManager checks that no official CCM runs: this program would wait for its end.
func (e *examination) officialManager(ctx context.Context) {
	const subject = "official CCM"
	lease := metav1.NamespaceSystem + "/" + leadership.OfficialLease
	official, err := leadership.ReadOfficial(ctx, e.kube.CoordinationV1().Leases(metav1.NamespaceSystem))
	switch {
	case err != nil:
		e.add("cluster", subject, doctor.NotChecked, fmt.Sprintf("read Lease %s: %v", lease, err), "")
	case official.Holder == "":
		e.add("cluster", subject, doctor.OK, fmt.Sprintf("nobody holds its Lease %s", lease), "")
	default:
		e.add("cluster", subject, doctor.Wrong, fmt.Sprintf("%s holds its Lease %s, renewed last at %s; this program waits until the Lease expires, or runs beside it if that one started later",
			official.Holder, lease, official.RenewTime.UTC().Format(time.RFC3339)),
			"stop the official CCM, see docs/how-to/migrate.md, or start this program with --takeover")
	}
}

// pausedServices lists the Services that an annotation pauses.
func (e *examination) pausedServices(ctx context.Context) {
	list, err := e.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.add("cluster", "paused Services", doctor.NotChecked, err.Error(), "")
		return
	}
	var names []string
	for i := range list.Items {
		if svc := &list.Items[i]; service.IsPaused(svc) {
			names = append(names, svc.Namespace+"/"+svc.Name)
		}
	}
	if len(names) > 0 {
		e.add("cluster", "paused Services", doctor.Optional, "the annotation "+service.AnnotationPaused+" pauses "+problem.Some(names),
			"remove the annotation once the manager may write again")
	}
}

// findings are what ECS says of the nodes, nil when it cannot be asked.
func (e *examination) findings(ctx context.Context, nodes []*corev1.Node) map[string]initor.Finding {
	if e.place.vpcID == "" {
		return nil
	}
	source, err := initor.NewECSSource(e.client, e.place.vpcID)
	if err != nil {
		return nil
	}
	findings, err := source.Lookup(ctx, nodes)
	if err != nil {
		e.add("nodes", "instances", doctor.Wrong, err.Error(), "grant ecs:DescribeInstances, and check Global.region and Global.vpcid")
		return nil
	}
	return findings
}
