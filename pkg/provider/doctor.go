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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
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
		e.add(doctor.AreaCluster, "API server", doctor.Wrong, unreachable.Error(), "correct --kubeconfig, or check the API server")
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
		e.add(doctor.AreaPermissions, "RAM actions", doctor.NotChecked, "the cloud has not accepted the access key", "")
	}
	e.cluster(ctx)
	e.report.Sort()
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
		e.add(doctor.AreaCloud, "settings", doctor.Wrong, err.Error(), "correct what this line names")
		return
	}
	e.client = client
	if e.env.PlainHTTP {
		e.add(doctor.AreaCloud, "encryption", doctor.Optional, "calls to the cloud, and temporary keys, go over plain HTTP",
			"unset "+envScheme+", which is for tests")
	}
	e.add(doctor.AreaCloud, "policy", doctor.OK, e.policy().String(), "")
	if unknown := e.config.Unknown; len(unknown) > 0 {
		e.add(doctor.AreaCloud, "cloud-config", doctor.Optional, "unknown fields have no effect: "+strings.Join(unknown, ", "),
			"check their spelling, or remove them")
	}
	if e.config.Paused {
		e.add(doctor.AreaManager, "pause", doctor.Wrong, "Global.paused of the cloud-config keeps the manager from writing to the cloud",
			"set it to false once the manager may write again")
	}
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
		e.add(doctor.AreaCloud, "clock", doctor.NotChecked, err.Error(), "")
		return
	}
	// The header counts whole seconds, and the answer takes its time.
	skew := theirs.Sub(asked).Round(10 * time.Second)
	if skew.Abs() > maxSkew {
		e.add(doctor.AreaCloud, "clock", doctor.Wrong, fmt.Sprintf("the cloud's clock is %s from this machine's", skew),
			"synchronize the clock of the machine with NTP (chrony, systemd-timesyncd)")
		return
	}
	e.add(doctor.AreaCloud, "clock", doctor.OK, fmt.Sprintf("within %s of the cloud's", maxSkew), "")
}

// network finds the VPC as the manager does, and with its vSwitches proves key, region and VPC.
func (e *examination) network(ctx context.Context) {
	if _, err := e.credentials.Credentials(ctx); err != nil {
		e.add(doctor.AreaCloud, subjectKey, doctor.Wrong, err.Error(),
			"correct "+e.keySource+", or set up another source: docs/reference/credentials.md")
		e.add(doctor.AreaCloud, "region and VPC", doctor.NotChecked, "there is no access key", "")
		return
	}
	vpcID, from := e.config.VPCID, "cloud-config"
	if vpcID == "" {
		here, err := e.whereabouts(ctx)
		if err != nil {
			if !e.keyRefused(err) {
				e.add(doctor.AreaCloud, "VPC", doctor.Wrong, err.Error(), "set Global.vpcid in the cloud-config")
			}
			return
		}
		vpcID, from = here.vpcID, "the machines"
	}
	vSwitches, err := e.client.DescribeVSwitches(ctx, vpcID)
	if e.keyRefused(err) {
		return
	}
	region := e.client.Region()
	explained := err
	switch {
	case err == nil && len(vSwitches) == 0:
		explained = fmt.Errorf("%s has no vSwitch in region %s", vpcID, region)
	case err != nil:
		explained = e.explain(region, vpcID, err)
	}
	if explained != nil && !alicloud.IsForbidden(err) {
		if inRegion := e.explainRegion(ctx, e.kube, region, explained); inRegion != explained || isUnknownRegion(err) { //nolint:errorlint // the same value
			e.add(doctor.AreaCloud, "region", doctor.Wrong, inRegion.Error(), "correct Global.region in the cloud-config")
			e.add(doctor.AreaCloud, "VPC", doctor.NotChecked, vpcID+": the region is wrong", "")
			return
		}
	}
	if e.reachable = !alicloud.IsAmbiguous(err); e.reachable {
		e.add(doctor.AreaCloud, subjectKey, doctor.OK, "the cloud accepts it, from "+e.keySource, "")
		e.add(doctor.AreaCloud, "region", doctor.OK, region, "")
	}
	switch {
	case alicloud.IsForbidden(err):
		e.add(doctor.AreaCloud, "VPC", doctor.NotChecked, vpcID+": vpc:DescribeVSwitches is denied", "")
	case explained != nil:
		e.add(doctor.AreaCloud, "VPC", doctor.Wrong, explained.Error(),
			"correct Global.vpcid and Global.region in the cloud-config, or the endpoint that this line names")
	default:
		e.vSwitches, e.place.vpcID = vSwitches, vpcID
		e.add(doctor.AreaCloud, "VPC", doctor.OK, fmt.Sprintf("%s from %s, %d vSwitches", vpcID, from, len(vSwitches)), "")
		e.configuredVSwitches()
		e.account(ctx)
	}
}

const subjectKey = "access key"

// keyRefused reports whether the cloud refuses the access key, and adds what to do about it: then nothing else in the cloud can be checked.
func (e *examination) keyRefused(err error) bool {
	if !alicloud.IsAuth(err) && !alicloud.IsNoCredentials(err) {
		return false
	}
	fix := "use a valid access key in " + e.keySource
	switch {
	case alicloud.HasCode(err, "SignatureDoesNotMatch"):
		fix = "the secret does not belong to the key ID: correct it in " + e.keySource
	case alicloud.HasCode(err, "InvalidAccessKeyId.NotFound"):
		fix = "the key was deleted or its ID is misspelled: create a key for the RAM user, and set it in " + e.keySource
	case alicloud.HasCode(err, "InvalidAccessKeyId.Inactive"):
		fix = "activate the key in the RAM console, or set another one in " + e.keySource
	case alicloud.HasCode(err, "InvalidTimeStamp.Expired", "InvalidTimeStamp.Format", "IllegalTimestamp"):
		fix = "synchronize the clock of this machine with NTP (chrony, systemd-timesyncd)"
	}
	e.add(doctor.AreaCloud, subjectKey, doctor.Wrong, e.explain(e.client.Region(), e.config.VPCID, err).Error(), fix)
	e.add(doctor.AreaCloud, "region and VPC", doctor.NotChecked, "the cloud does not accept the access key", "")
	return true
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
		e.add(doctor.AreaCloud, "account", doctor.NotChecked, err.Error(), "")
	case account != owner:
		e.add(doctor.AreaCloud, "account", doctor.Wrong,
			fmt.Sprintf("the access key belongs to account %s, but this machine to account %s", account, owner),
			"use a key of the account that the cluster's instances and load balancers are in")
	default:
		e.add(doctor.AreaCloud, "account", doctor.OK, account+", that of this machine", "")
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
			e.add(doctor.AreaCloud, "vSwitch "+id, doctor.Wrong, "it is not in "+e.place.vpcID, "correct Global.vswitchid in the cloud-config")
		}
	}
}

// cluster checks what the API server knows.
func (e *examination) cluster(ctx context.Context) {
	if e.kube == nil {
		for _, area := range []string{doctor.AreaManager, doctor.AreaServices, doctor.AreaNodes} {
			e.add(area, "all", doctor.NotChecked, "the API server does not answer", "")
		}
		return
	}
	e.leader(ctx)
	e.officialManager(ctx)
	e.report.Add(doctor.Rights(ctx, e.kube, e.rights(ctx))...)
	e.report.Add(doctor.KeyReaders(ctx, e.kube))
	if services, err := e.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err != nil {
		e.add(doctor.AreaServices, "list", doctor.NotChecked, err.Error(), "")
	} else {
		e.services(services.Items)
		e.pausedServices(services.Items)
	}
	list, err := e.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		e.add(doctor.AreaNodes, "list", doctor.NotChecked, err.Error(), "")
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
		e.add(doctor.AreaManager, subject, doctor.NotChecked, fmt.Sprintf("read Lease %s: %v", lease, err), "")
	case official.Holder == "":
		e.add(doctor.AreaManager, subject, doctor.OK, fmt.Sprintf("nobody holds its Lease %s", lease), "")
	default:
		e.add(doctor.AreaManager, subject, doctor.Wrong,
			fmt.Sprintf("%s holds its Lease %s, renewed last at %s; this program waits until the Lease expires, or runs beside it if that one started later",
				official.Holder, lease, official.RenewTime.UTC().Format(time.RFC3339)),
			"stop the official CCM, see docs/how-to/migrate.md, or start this program with --takeover")
	}
}

// pausedServices lists the Services that an annotation pauses.
func (e *examination) pausedServices(list []corev1.Service) {
	var names []string
	for i := range list {
		if svc := &list[i]; driver.IsPaused(svc) {
			names = append(names, svc.Namespace+"/"+svc.Name)
		}
	}
	if len(names) > 0 {
		e.add(doctor.AreaServices, "paused", doctor.Optional, "the annotation "+driver.AnnotationPaused+" pauses "+problem.Some(names),
			"remove the annotation once the manager may write again")
	}
}

// findings are what ECS says of the nodes, nil when it cannot be asked.
func (e *examination) findings(ctx context.Context, nodes []*corev1.Node) map[string]initor.Finding {
	if e.place.vpcID == "" {
		return nil
	}
	findings, err := (&initor.ECSSource{API: e.client, VPCID: e.place.vpcID}).Lookup(ctx, nodes)
	if err != nil {
		e.add(doctor.AreaNodes, "instances", doctor.Wrong, err.Error(), "grant ecs:DescribeInstances, and check Global.region and Global.vpcid")
		return nil
	}
	return findings
}
