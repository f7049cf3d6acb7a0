package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// recorder is a [Writer] that writes down the calls, in the words of the client, and takes them unless it was told to refuse. What a job
// carries out gets the number of
// the call as its job.
type recorder struct {
	calls []string
	// refuses has calls refused that contain a text.
	refuses map[string]error
	perCall int
}

func answer(code string) error { return &alicloud.Error{Code: code, Status: 400} }

// call writes a call down, a refused one with its code at the end.
func (r *recorder) call(parts ...any) error {
	text := strings.TrimSuffix(fmt.Sprintln(parts...), "\n")
	for part, err := range r.refuses {
		if !strings.Contains(text, part) {
			continue
		}
		why := err.Error()
		if refused, ok := errors.AsType[*alicloud.Error](err); ok {
			why = refused.Code
		}
		r.calls = append(r.calls, text+" = "+why)
		return err
	}
	r.calls = append(r.calls, text)
	return nil
}

func (r *recorder) job(parts ...any) (alicloud.Job, error) {
	if err := r.call(parts...); err != nil {
		return "", err
	}
	return alicloud.Job(fmt.Sprintf("job-%d", len(r.calls))), nil
}

func ids(servers []alicloud.NLBServer) string {
	names := make([]string, len(servers))
	for i := range servers {
		names[i] = servers[i].ID
	}
	return "[" + strings.Join(names, " ") + "]"
}

func (r *recorder) CreateNLB(_ context.Context, lb alicloud.NLB, token string) (string, error) {
	return "nlb-1", r.call("CreateNLB", token, lb.SecurityGroups)
}

func (r *recorder) DeleteNLB(_ context.Context, id string) (alicloud.Job, error) {
	return r.job("DeleteNLB", id)
}

func (r *recorder) UpdateNLB(_ context.Context, id string, _ alicloud.NLBAttributes) (alicloud.Job, error) {
	return r.job("UpdateNLB", id)
}

func (r *recorder) ProtectNLB(_ context.Context, id string, _ alicloud.NLBProtection) error {
	return r.call("ProtectNLB", id)
}

func (r *recorder) SetNLBAddressType(_ context.Context, _, addressType string, zones []alicloud.NLBZone) (alicloud.Job, error) {
	return r.job("SetNLBAddressType", addressType, len(zones))
}

func (r *recorder) SetNLBZones(_ context.Context, _ string, zones []alicloud.NLBZone) (alicloud.Job, error) {
	return r.job("SetNLBZones", len(zones))
}

func (r *recorder) SetNLBIPv6AddressType(_ context.Context, _, addressType string) error {
	return r.call("SetNLBIPv6AddressType", addressType)
}

func (r *recorder) JoinSecurityGroups(_ context.Context, _ string, groups []string) (alicloud.Job, error) {
	return r.job("JoinSecurityGroups", groups)
}

func (r *recorder) LeaveSecurityGroups(_ context.Context, _ string, groups []string) (alicloud.Job, error) {
	return r.job("LeaveSecurityGroups", groups)
}

func (r *recorder) AttachBandwidthPackage(_ context.Context, _, pack string) (alicloud.Job, error) {
	return r.job("AttachBandwidthPackage", pack)
}

func (r *recorder) DetachBandwidthPackage(_ context.Context, _, pack string) (alicloud.Job, error) {
	return r.job("DetachBandwidthPackage", pack)
}

func (r *recorder) CreateNLBGroup(_ context.Context, g alicloud.NLBGroup, _ string) (string, alicloud.Job, error) {
	job, err := r.job("CreateNLBGroup", g.Name, g.Protocol)
	return "sgp-" + g.Name, job, err
}

func (r *recorder) UpdateNLBGroup(_ context.Context, id string, _ alicloud.NLBGroupSettings) (alicloud.Job, error) {
	return r.job("UpdateNLBGroup", id)
}

func (r *recorder) DeleteNLBGroup(_ context.Context, id string) (alicloud.Job, error) {
	return r.job("DeleteNLBGroup", id)
}

func (r *recorder) ServersPerCall() int {
	if r.perCall == 0 {
		return 100
	}
	return r.perCall
}

func (r *recorder) AddNLBServers(_ context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error) {
	return r.job("AddNLBServers", group, ids(servers))
}

func (r *recorder) UpdateNLBServers(_ context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error) {
	return r.job("UpdateNLBServers", group, ids(servers))
}

func (r *recorder) RemoveNLBServers(_ context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error) {
	return r.job("RemoveNLBServers", group, ids(servers))
}

func (r *recorder) CreateNLBListener(_ context.Context, l alicloud.NLBListener, _ string) (string, alicloud.Job, error) {
	job, err := r.job("CreateNLBListener", l.Port, *l.ServerGroupID)
	return fmt.Sprintf("lsn-%d", l.Port), job, err
}

func (r *recorder) TryNLBListener(_ context.Context, l alicloud.NLBListener) error {
	return r.call("TryNLBListener", l.Port, *l.ServerGroupID)
}

func (r *recorder) UpdateNLBListener(_ context.Context, id string, settings alicloud.NLBListenerSettings) (alicloud.Job, error) {
	group := "-"
	if settings.ServerGroupID != nil {
		group = *settings.ServerGroupID
	}
	parts := []any{"UpdateNLBListener", id, group}
	if len(settings.CertificateIDs) > 0 {
		parts = append(parts, settings.CertificateIDs)
	}
	if settings.SecurityPolicyID != nil {
		parts = append(parts, *settings.SecurityPolicyID)
	}
	return r.job(parts...)
}

func (r *recorder) DeleteNLBListener(_ context.Context, id string) (alicloud.Job, error) {
	return r.job("DeleteNLBListener", id)
}

func (r *recorder) StartNLBListener(_ context.Context, id string) (alicloud.Job, error) {
	return r.job("StartNLBListener", id)
}

func (r *recorder) AddCertificates(_ context.Context, listener string, ids []string) (alicloud.Job, error) {
	return r.job("AddCertificates", listener, len(ids))
}

func (r *recorder) RemoveCertificates(_ context.Context, listener string, ids []string) (alicloud.Job, error) {
	return r.job("RemoveCertificates", listener, len(ids))
}

func (r *recorder) CreateSecurityGroup(_ context.Context, g alicloud.SecurityGroup, _ string) (string, error) {
	return "sg-own", r.call("CreateSecurityGroup", g.Name)
}

func (r *recorder) DeleteSecurityGroup(_ context.Context, id string) error {
	return r.call("DeleteSecurityGroup", id)
}

func (r *recorder) AddSecurityRules(_ context.Context, id string, rules []alicloud.SecurityRule) error {
	return r.call("AddSecurityRules", id, len(rules))
}

func (r *recorder) RemoveSecurityRules(_ context.Context, id string, rules []alicloud.SecurityRule) error {
	return r.call("RemoveSecurityRules", id, len(rules))
}

func (r *recorder) TagNLB(_ context.Context, _ string, ids []string, tags []alicloud.Tag) error {
	return r.call("TagNLB", ids, len(tags))
}

func (r *recorder) UntagNLB(_ context.Context, _ string, ids, keys []string) error {
	return r.call("UntagNLB", ids, keys)
}
