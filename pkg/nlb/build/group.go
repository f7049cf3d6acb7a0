package build

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// buildGroup returns the server group of a port; false says that the port stays as it is.
func (b *builder) buildGroup(port corev1.ServicePort, l *model.Listener) (model.Group, bool) {
	params := b.in.Params
	text := strconv.Itoa(int(port.NodePort))
	switch {
	case l.Port == 0:
		text = l.Ports()
	case b.in.usesPods():
		text = backend.TargetPort(port)
	}
	group := model.Group{
		NLBGroup: alicloud.NLBGroup{
			Name: b.owner.NLBGroupName(text, l.Protocol), Type: b.in.groupType(), Protocol: l.Protocol,
			VPCID: b.vpcID(), AnyPort: l.Port == 0, ResourceGroupID: b.resourceGroup(), Tags: mark.Tags(b.in.Service, b.in.ClusterID),
		},
		KeepWeights: params.Get(annotation.IgnoreWeightUpdate) == "on",
	}
	group.Description = group.Name
	switch b.in.backendFamily() {
	case annotation.FamilyIPv6:
		group.AddressIPVersion, group.Affinity = alicloud.NLBDualStack, alicloud.NLBNonAffinity
	case annotation.FamilyDual:
		group.AddressIPVersion, group.Affinity = alicloud.NLBDualStack, alicloud.NLBAffinity
	}
	set, problems := b.resolver.Backends(port, group.Description)
	b.problems = append(b.problems, problems...)
	b.buildServers(&group, &set)
	b.groupSettings(&group, port, l)
	if !b.in.usesPods() && port.NodePort == 0 {
		b.problems = append(b.problems, backend.WithoutNodePort(port))
		return group, false
	}
	group, ok := b.joinGroup(group, port, text)
	b.keepUndecided(&group)
	return group, ok
}

// joinGroup turns the group of a port into one of others, if the annotation vgroup-port says so. Only the description says there which
// servers are the Service's, so that it is the whole mark, also where the name of a group would have to be cut.
func (b *builder) joinGroup(group model.Group, port corev1.ServicePort, text string) (model.Group, bool) {
	id, ok := b.joined[port.Port]
	b.divideWeight(&group)
	if b.observed.Reused && (b.in.Params.Refused(annotation.VGroupPort) || b.joinedTwice.Has(port.Port)) {
		return group, false
	}
	if !ok {
		return group, true
	}
	have := b.observed.GroupByID(id)
	reason := ""
	switch {
	case have == nil, !have.Foreign, madeByManager(have), have.VPCID != group.VPCID, b.leadsToAPIServer(have):
		// One text for all, so that nobody finds out which server groups the account has by naming them.
		reason = "does not exist in VPC " + group.VPCID +
			", or may not be used, because a cloud controller manager made it or it is that of the API server"
	case !strings.EqualFold(have.Type, group.Type):
		reason = "is of the type " + have.Type
	}
	if reason != "" {
		b.addProblem(problem.ReasonSkipSyncBackends, "%s: port %d is not served: server group %s %s", annotation.VGroupPort, port.Port, id,
			reason)
		return group, false
	}
	group.Name, group.ID, group.Foreign = id, id, true // several may have one name
	if whole := b.owner.NLBMark(text, group.Protocol); len(whole) <= maxDescription {
		group.Description = whole
		for _, servers := range [][]alicloud.NLBServer{group.Servers, group.Draining} {
			for i := range servers {
				servers[i].Description = whole
			}
		}
	}
	return group, true
}

// maxDescription is how many characters the description of a server has at most.
// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-addserverstoservergroup.
const maxDescription = 256

// leadsToAPIServer reports whether a group has an API server. It may belong to another load balancer than the one that the Service uses, so
// that the check of that does not see it, and a part of what is meant for the API servers would arrive at the Service.
func (b *builder) leadsToAPIServer(group *model.Group) bool {
	server := b.in.Config.APIServer()
	return slices.ContainsFunc(group.Servers, func(s alicloud.NLBServer) bool { return server.Is(s.ID, s.IP, s.Port) })
}

// madeByManager reports whether a cloud controller manager made a group.
func madeByManager(group *model.Group) bool {
	_, _, marked := mark.ParseNLB(group.Name)
	return marked || slices.ContainsFunc(group.Tags, func(t alicloud.Tag) bool { return t.Key == mark.TagOwner })
}

// divideWeight spreads the weight that the Service has in a group.
func (b *builder) divideWeight(group *model.Group) {
	if b.observed.Reused && b.in.Params.JoinsGroups() && b.in.Params.Has(annotation.Weight) {
		backend.Divide(group.Servers, b.in.Params.Int(annotation.Weight, alicloud.MaxWeight), func(s *alicloud.NLBServer) *int {
			return &s.Weight
		})
	}
}

// serverOf returns a backend as a group has it; false says that the group knows servers by their addresses, and that it has none.
func serverOf(from backend.Backend, group *model.Group) (alicloud.NLBServer, bool) {
	server := alicloud.NLBServer{Weight: from.Weight, Description: group.Description}
	server.ID, server.IP, server.Port, server.Type = from.ID, from.IP, from.Port, alicloud.NLBServerECS
	if from.Kind == backend.KindInterface {
		server.Type = alicloud.NLBServerENI
	}
	if group.AnyPort {
		server.Port = 0
	}
	if group.Type != alicloud.NLBIPGroup {
		return server, true
	}
	address := from.IP + from.NodeIP
	server.ID, server.IP, server.Type = address, address, alicloud.NLBServerIP
	return server, address != ""
}

// serversOf returns the backends of a port as its group has them.
func serversOf(set *backend.Set, convert func(backend.Backend) (alicloud.NLBServer, bool)) (servers, draining []alicloud.NLBServer) {
	var all []alicloud.NLBServer
	for from := range set.All {
		if server, ok := convert(from); ok {
			all = append(all, server)
		}
	}
	for _, from := range set.Draining {
		if server, ok := convert(from); ok {
			draining = append(draining, server)
		}
	}
	return backend.Join(nil, all, serverKey), draining
}

// buildServers puts the backends of a port into its group.
func (b *builder) buildServers(group *model.Group, set *backend.Set) {
	group.Doubt, group.Gone, group.Held = set.Doubt, set.Gone, set.Held
	var without []string
	convert := func(from backend.Backend) (alicloud.NLBServer, bool) {
		server, ok := serverOf(from, group)
		if !ok {
			without = append(without, from.ID)
		}
		return server, ok
	}
	group.Servers, group.Draining = serversOf(set, convert)
	if len(without) > 0 {
		// Those that serve in another group, or have lost their address a moment ago, go on to do so.
		group.Doubt = group.Doubt || len(group.Servers) == 0
		b.addProblem(problem.ReasonSkipSyncBackends, "nodes without an InternalIP cannot be backend servers of an %s group: %s",
			alicloud.NLBIPGroup, problem.Some(without))
	}
}

// noteDead notes which of the servers that there are take no traffic.
func (b *builder) noteDead() {
	b.model.Dead = sets.New[string]()
	for i := range b.observed.Groups {
		for k := range b.observed.Groups[i].Servers {
			if server := &b.observed.Groups[i].Servers[k]; server.Type == alicloud.NLBServerECS && b.in.Nodes.Dead(server.ID) {
				b.model.Dead.Insert(server.ID)
			}
		}
	}
}

// groupSettings sets what the annotations say of a group.
func (b *builder) groupSettings(group *model.Group, port corev1.ServicePort, l *model.Listener) {
	params := b.in.Params
	if scheduler := b.textOf(annotation.Scheduler); scheduler != nil && (*scheduler != "qch" || l.Protocol == alicloud.NLBUDP) {
		switch *scheduler {
		case "wrr", "wlc":
			*scheduler = strings.ToUpper((*scheduler)[:1]) + (*scheduler)[1:]
		}
		group.Scheduler = scheduler
	} else if scheduler != nil {
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s: qch has no effect on port %d, which is not UDP", annotation.Scheduler, port.Port)
	}
	group.ConnectionDrain = b.flagOf(annotation.ConnectionDrain)
	if params.Get(annotation.ConnectionDrain) == "on" {
		group.DrainTimeout = b.numberOf(annotation.ConnectionDrainTimeout)
	}
	b.clientIP(group, l)
	b.healthCheck(group, port, l)
}

// clientIP: addresses of clients cannot be kept where TLS ends at the load balancer, nor for servers known by their address.
func (b *builder) clientIP(group *model.Group, l *model.Listener) {
	preserve := b.flagOf(annotation.PreserveClientIP)
	if l.Protocol != alicloud.NLBTCPSSL && group.Type != alicloud.NLBIPGroup {
		group.PreserveClientIP = preserve
		return
	}
	if preserve != nil && *preserve && !b.in.Params.Reverted[annotation.PreserveClientIP] {
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s: \"on\" has no effect on TCPSSL listeners and server groups of the type %s",
			annotation.PreserveClientIP, alicloud.NLBIPGroup)
	}
	if l.Protocol == alicloud.NLBTCPSSL {
		off := false
		group.PreserveClientIP = &off
	}
}

// healthCheck sets what the annotations say of the check. Without its flag the others have no effect.
func (b *builder) healthCheck(group *model.Group, port corev1.ServicePort, l *model.Listener) {
	check := &group.HealthCheck
	check.Enabled = b.flagOf(annotation.HealthCheckFlag)
	if check.Enabled != nil && b.in.Params.Reverted[annotation.HealthCheckFlag] && l.Protocol == alicloud.NLBUDP {
		*check.Enabled = false // as without the annotation from the beginning: the check of the API is by TCP
	}
	node := backend.NodeCheckPort(b.in.Service, b.in.Params, b.in.usesPods())
	switch {
	case check.Enabled == nil && node > 0:
		check.Enabled = new(true)
	case check.Enabled == nil && b.in.Params.Reverted[annotation.HealthCheck]:
		check.Enabled, check.Type, check.ConnectPort = new(l.Protocol != alicloud.NLBUDP), new(alicloud.NLBTCP), new(0)
		return
	case check.Enabled == nil:
		checkTargetPort(check, port, l)
		return
	}
	if !*check.Enabled {
		return
	}
	b.checkType(check, port, l)
	check.ConnectPort, check.Healthy, check.Unhealthy = b.numberOf(annotation.HealthCheckConnectPort), b.numberOf(annotation.HealthyThreshold), b.numberOf(annotation.UnhealthyThreshold)
	checkTargetPort(check, port, l)
	b.checkTimes(group, port, l)
	if b.in.Params.Get(annotation.HealthCheckType) == "http" || node > 0 && check.Type == nil {
		b.checkHTTP(check)
		nodeCheck(check, node)
	}
}

// nodeCheck has nodes checked by what kube-proxy says of them, where no annotation says anything else.
func nodeCheck(check *alicloud.NLBHealthCheck, port int) {
	if port == 0 {
		return
	}
	check.Type = new("HTTP")
	if check.ConnectPort == nil {
		check.ConnectPort = &port
	}
	if check.URL == nil {
		check.URL = new(backend.NodeCheckPath)
	}
}

// checkTargetPort has the target port checked where a listener is for a range of ports: the servers of its group have no port.
func checkTargetPort(check *alicloud.NLBHealthCheck, port corev1.ServicePort, l *model.Listener) {
	if l.Port == 0 {
		target := int(port.TargetPort.IntVal)
		check.ConnectPort = &target
	}
}

// checkType sets the type of the check. UDP is for UDP ports only.
func (b *builder) checkType(check *alicloud.NLBHealthCheck, port corev1.ServicePort, l *model.Listener) {
	kind := b.textOf(annotation.HealthCheckType)
	switch {
	case kind == nil:
	case *kind == "udp" && l.Protocol != alicloud.NLBUDP:
		b.addProblem(problem.ReasonInvalidAnnotation, "%s: udp is not accepted for port %d, which is %s; accepted: tcp, http",
			annotation.HealthCheckType, port.Port, l.Protocol)
	default:
		*kind = strings.ToUpper(*kind)
		check.Type = kind
	}
}

// defaultCheckTime is the interval and the timeout of a check in seconds where nothing else is asked for.
// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-createservergroup.
const defaultCheckTime = 5

func takeValue(into *int, value *int) {
	if value != nil {
		*into = *value
	}
}

// maxInterval is the longest interval between two checks of a listener that is not UDP, in seconds. The same page has it.
const maxInterval = 50

// checkTimes sets the interval and the timeout of the check. That by UDP needs an interval of at least the timeout, and listeners that are
// not UDP have a lower limit.
func (b *builder) checkTimes(group *model.Group, port corev1.ServicePort, l *model.Listener) {
	check := &group.HealthCheck
	interval, timeout := b.numberOf(annotation.HealthCheckInterval), b.numberOf(annotation.HealthCheckConnectTimeout)
	often, long := defaultCheckTime, defaultCheckTime
	if have := b.observed.Matching(group); have != nil {
		takeValue(&often, have.HealthCheck.Interval)
		takeValue(&long, have.HealthCheck.ConnectTimeout)
	}
	takeValue(&often, interval)
	takeValue(&long, timeout)
	switch {
	case model.Text(check.Type) == alicloud.NLBUDP && often < long:
		b.addProblem(problem.ReasonInvalidAnnotation, "%s: %d is not accepted for the check of port %d by UDP: at least %s, which is %d",
			annotation.HealthCheckInterval, often, port.Port, annotation.HealthCheckConnectTimeout, long)
		return
	case l.Protocol != alicloud.NLBUDP && often > maxInterval:
		b.addProblem(problem.ReasonInvalidAnnotation, "%s: %d is not accepted for port %d: at most %d, unless the listener is UDP",
			annotation.HealthCheckInterval, often, port.Port, maxInterval)
		interval = nil
	}
	check.Interval, check.ConnectTimeout = interval, timeout
}

// checkHTTP sets what only checks by HTTP have.
func (b *builder) checkHTTP(check *alicloud.NLBHealthCheck) {
	check.URL, check.Domain, check.Version = b.textOf(annotation.HealthCheckURI), b.textOf(annotation.HealthCheckDomain), b.textOf(annotation.HealthCheckHTTPVersion)
	check.Codes = annotation.ListOf(b.in.Params, annotation.HealthCheckHTTPCode)
	if method := b.textOf(annotation.HealthCheckMethod); method != nil {
		*method = strings.ToUpper(*method)
		check.Method = method
	}
}
