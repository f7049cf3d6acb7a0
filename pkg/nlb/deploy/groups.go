package deploy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// createGroup: documents differ about groups of TCPSSL. Where the cloud takes none, a group of TCP serves the listener, too.
func (a *Applier) createGroup(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	group := step.Group
	if group.Protocol == alicloud.NLBTCPSSL && a.Memory.noTCPSSL.Load() {
		group.Protocol = alicloud.NLBTCP
	}
	create := func() (alicloud.Job, error) {
		id, job, err := a.API.CreateNLBGroup(ctx, group, rand.Text())
		if err == nil {
			group.ID, group.Status = id, alicloud.NLBGroupAvailable
			a.Model.Groups = append(a.Model.Groups, model.Group{NLBGroup: group})
		}
		return job, err
	}
	job, err := a.startJob(create)
	var refused *alicloud.Error
	if group.Protocol == alicloud.NLBTCPSSL && errors.As(err, &refused) && strings.EqualFold(refused.Code, "IllegalParam.Protocol") {
		a.Memory.noTCPSSL.Store(true)
		group.Protocol = alicloud.NLBTCP
		job, err = a.startJob(create)
	}
	return job, err
}

// groupOf is the one of a step in the model.
func (a *Applier) groupOf(step *model.Step) (*model.Group, error) {
	if have := a.Model.GroupByID(step.Group.ID); have != nil {
		return have, nil
	}
	for i := len(a.Model.Groups) - 1; i >= 0; i-- {
		if a.Model.Groups[i].Name == step.Group.Name {
			return &a.Model.Groups[i], nil
		}
	}
	return nil, fmt.Errorf("server group %s does not exist", step.Group.Name)
}

func (a *Applier) updateGroup(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	have, err := a.groupOf(step)
	if err != nil {
		return "", err
	}
	settings := step.Settings
	if !reflect.ValueOf(settings.HealthCheck).IsZero() {
		settings.HealthCheck = wholeCheck(&have.NLBGroupSettings, &settings)
	}
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.UpdateNLBGroup(ctx, have.ID, settings) })
	if err == nil {
		mergeGroup(&have.NLBGroupSettings, &step.Settings)
	}
	return job, err
}

// wholeCheck returns all that a health check is to be: the API takes it as one object, and no document says that what such an object lacks
// stays.
func wholeCheck(have, changes *alicloud.NLBGroupSettings) alicloud.NLBHealthCheck {
	whole := *have
	mergeGroup(&whole, changes)
	check := whole.HealthCheck
	if check.Type == nil || !strings.EqualFold(*check.Type, "HTTP") {
		check.Domain, check.URL, check.Method, check.Codes = changes.HealthCheck.Domain, changes.HealthCheck.URL, changes.HealthCheck.Method, changes.HealthCheck.Codes
	}
	return check
}

// mergeGroup takes over the settings that are given.
func mergeGroup(into, changes *alicloud.NLBGroupSettings) {
	takeValue(&into.Scheduler, changes.Scheduler)
	takeValue(&into.ConnectionDrain, changes.ConnectionDrain)
	takeValue(&into.DrainTimeout, changes.DrainTimeout)
	takeValue(&into.PreserveClientIP, changes.PreserveClientIP)
	h, c := &into.HealthCheck, &changes.HealthCheck
	takeValue(&h.Enabled, c.Enabled)
	takeValue(&h.Type, c.Type)
	takeValue(&h.ConnectPort, c.ConnectPort)
	takeValue(&h.ConnectTimeout, c.ConnectTimeout)
	takeValue(&h.Interval, c.Interval)
	takeValue(&h.Healthy, c.Healthy)
	takeValue(&h.Unhealthy, c.Unhealthy)
	takeValue(&h.Domain, c.Domain)
	takeValue(&h.URL, c.URL)
	takeValue(&h.Method, c.Method)
	takeList(&h.Codes, c.Codes)
}

// codeGroupInUse refuses to delete a group that a listener uses.
const codeGroupInUse = "ResourceInUse.ServerGroup"

// deleteGroup takes the group as gone that does not exist. That of a listener which may be put back stays.
func (a *Applier) deleteGroup(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	if a.standsBy(step.Group.ID) {
		return "", nil
	}
	if err := a.Memory.uses.Err(step.Group.ID, time.Now()); err != nil {
		return "", known{err}
	}
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.DeleteNLBGroup(ctx, step.Group.ID) })
	a.Memory.uses.Note(step.Group.ID, err, refusesDeletion(err), time.Now())
	if alicloud.IsNotFound(err) {
		job, err = "", nil
	}
	if err == nil {
		var leaving []alicloud.NLBServer
		if have := a.Model.GroupByID(step.Group.ID); have != nil {
			leaving = have.Servers
		}
		a.Memory.noteRoom(a.Model.Groups, leaving) // its listener, with which it counted, is gone
		a.Model.Groups = slices.DeleteFunc(a.Model.Groups, func(g model.Group) bool { return g.ID == step.Group.ID })
	}
	return job, err
}

func (a *Applier) tagGroup(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	err := a.callOnce(func() error { return a.API.TagNLB(ctx, alicloud.NLBTagGroup, []string{step.Group.ID}, step.Tags) })
	if have := a.Model.GroupByID(step.Group.ID); err == nil && have != nil {
		have.Tags = append(slices.Clone(have.Tags), step.Tags...)
	}
	return "", err
}

func (a *Applier) untagGroup(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	err := a.callOnce(func() error { return a.API.UntagNLB(ctx, alicloud.NLBTagGroup, []string{step.Group.ID}, step.IDs) })
	if have := a.Model.GroupByID(step.Group.ID); err == nil && have != nil {
		have.Tags = withoutTags(have.Tags, step.IDs)
	}
	return "", err
}

// leftOutError says that a backend server was left out that the cloud refused.
type leftOutError struct {
	servers []string
	err     error
	// fills says that others give servers up for the group: this is no failure, after each of which the next pass would come later.
	fills bool
}

func (e *leftOutError) Error() string {
	return fmt.Sprintf("left out %s, which will be tried again later: %v", problem.Some(e.servers), e.err)
}

func (e *leftOutError) Unwrap() error { return e.err }

// As has an error about a group that others make room for count as one that only means "not now".
func (e *leftOutError) As(target any) bool {
	wait, ok := target.(**problem.WaitError)
	if !ok || !e.fills {
		return false
	}
	*wait = &problem.WaitError{Reason: e.Error(), For: fillingPause.First}
	return true
}

// addServers adds as many servers as one call takes; each call is a job, and the next pass adds the others. Where the cloud refuses one
// of them, or a quota leaves no room for all, smaller calls find out which it takes.
func (a *Applier) addServers(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	have, err := a.groupOf(step)
	if err != nil {
		return "", err
	}
	wanted, left := a.Memory.acceptableServers(have.ID, step.Servers)
	var job alicloud.Job
	inARow := 0
	for n := min(len(wanted), a.API.ServersPerCall()); len(wanted) > 0; {
		part := wanted[:min(n, len(wanted))]
		job, err = a.startJob(func() (alicloud.Job, error) { return a.API.AddNLBServers(ctx, have.ID, part) })
		switch {
		case err == nil:
			have.Servers = append(slices.Clone(have.Servers), part...)
			a.Waits = a.Waits || len(part) < len(wanted)
			return job, left.asError()
		case alicloud.IsServersPerCall(err) && len(part) > a.API.ServersPerCall():
			n = a.API.ServersPerCall()
		case !refusesServers(err):
			return "", err
		case len(part) > 1:
			n = len(part) / 2
		default:
			refused := part
			if inARow++; inARow >= maxInARow {
				refused = wanted
			}
			a.leaveOut(have.ID, refused, left, err)
			wanted, n = wanted[len(refused):], 1
		}
	}
	return "", left.asError()
}

// leaveOut notes that the cloud refused the first of these servers, and that the others count as refused.
func (a *Applier) leaveOut(group string, servers []alicloud.NLBServer, left *leftOut, err error) {
	if alicloud.IsQuota(err) && servers[0].Type == alicloud.NLBServerECS {
		a.Exhausted = append(a.Exhausted, servers[0].ID)
	}
	a.noteFull(group, err)
	for i := range servers {
		a.Memory.refuseServer(group, servers[i].NLBServerKey, err)
		left.addServer(servers[i], err)
	}
}

// maxInARow is how many servers the cloud may refuse one by one before the others count as refused, too: the cause may be a quota of the
// group or of the load balancer, and then each attempt wastes a call.
const maxInARow = 5

// updateServers does not drain the last servers of a group if the cloud has just refused those that were to come.
func (a *Applier) updateServers(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	have, err := a.groupOf(step)
	if err != nil {
		return "", err
	}
	if a.RefusedServer && endsTraffic(have, step.Servers) {
		return "", nil
	}
	part, job, err := a.serverCall(step.Servers, func(part []alicloud.NLBServer) (alicloud.Job, error) {
		return a.API.UpdateNLBServers(ctx, have.ID, part)
	})
	if err == nil {
		have.Servers = slices.Clone(have.Servers)
		for i := range have.Servers {
			at := slices.IndexFunc(part, func(s alicloud.NLBServer) bool { return sameServer(&s, &have.Servers[i]) })
			if at >= 0 {
				have.Servers[i].Weight, have.Servers[i].Description = part[at].Weight, part[at].Description
			}
		}
	}
	return job, err
}

// serverCall changes some servers of a group, as many as one call takes; the next pass changes the others. Where the cloud refuses it for
// what it says about them, or for their number, smaller calls find out which it takes. It returns those that it took.
func (a *Applier) serverCall(
	servers []alicloud.NLBServer, call func(part []alicloud.NLBServer) (alicloud.Job, error),
) (part []alicloud.NLBServer, job alicloud.Job, err error) {
	refused := 0
	for n := a.API.ServersPerCall(); ; {
		part = servers[:min(n, len(servers))]
		job, err = a.startJob(func() (alicloud.Job, error) { return call(part) })
		switch {
		case err == nil:
			a.Waits = a.Waits || len(part) < len(servers)
			return part, job, nil
		case !refusesServers(err):
			return nil, "", err
		case len(part) > 1:
			n = len(part) / 2
		default:
			if refused++; refused >= maxInARow || len(servers) == 1 {
				return nil, "", err
			}
			servers = servers[1:]
		}
	}
}

// endsTraffic reports whether no server of the group takes traffic after these updates.
func endsTraffic(group *model.Group, updates []alicloud.NLBServer) bool {
	serves := func(s alicloud.NLBServer) bool { return s.Weight > 0 }
	stays := func(s alicloud.NLBServer) bool {
		return serves(s) && !slices.ContainsFunc(updates, func(u alicloud.NLBServer) bool { return sameServer(&u, &s) })
	}
	return !slices.ContainsFunc(updates, serves) && !slices.ContainsFunc(group.Servers, stays)
}

// removeServers leaves a group whose others could not come with those that take its traffic, while nothing else does.
func (a *Applier) removeServers(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	have, err := a.groupOf(step)
	if err != nil {
		return "", err
	}
	leaving := step.Servers
	if lacking := a.lacking[step.Target]; lacking != nil {
		if leaving = expendableServers(have, leaving, lacking); len(leaving) == 0 {
			return "", nil
		}
	}
	part, job, err := a.serverCall(leaving, func(part []alicloud.NLBServer) (alicloud.Job, error) {
		return a.API.RemoveNLBServers(ctx, have.ID, part)
	})
	if err == nil {
		a.Memory.noteRoom(a.Model.Groups, part)
		have.Servers = slices.DeleteFunc(slices.Clone(have.Servers), func(s alicloud.NLBServer) bool {
			return slices.ContainsFunc(part, func(p alicloud.NLBServer) bool { return sameServer(&p, &s) })
		})
	}
	return job, err
}

// expendableServers returns those of the servers that may leave a group although others could not come: all while one that takes traffic
// stays, else none. Where a quota keeps the others out, all but one make room for them.
func expendableServers(group *model.Group, leaving []alicloud.NLBServer, lacking error) []alicloud.NLBServer {
	serves := func(s alicloud.NLBServer) bool { return s.Weight > 0 && s.Status != alicloud.NLBServerRemoving }
	stays := func(s alicloud.NLBServer) bool {
		return serves(s) && !slices.ContainsFunc(leaving, func(l alicloud.NLBServer) bool { return sameServer(&l, &s) })
	}
	last := slices.IndexFunc(leaving, serves)
	switch {
	case last < 0, slices.ContainsFunc(group.Servers, stays):
		return leaving
	case alicloud.IsQuota(lacking):
		return slices.Delete(slices.Clone(leaving), last, last+1)
	}
	return nil
}

// sameServer reports whether two entries name the same server: the API fills in the address of an instance.
func sameServer(a, b *alicloud.NLBServer) bool {
	return a.ID == b.ID && a.Type == b.Type && a.Port == b.Port && (a.IP == b.IP || a.Type == alicloud.NLBServerECS)
}
