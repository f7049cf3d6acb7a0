package nlb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// certificatesPerCall is how many additional certificates one call takes.
const certificatesPerCall = 15

func (s service) certificateActions() []api.Action {
	ids := api.ListOf("AdditionalCertificateIds", certificatesPerCall, api.Required)
	return []api.Action{
		{Name: "ListListenerCertificates", Kind: api.Read, Params: append(api.Tokened("MaxResults", 50), listenerID(), api.Str("CertType")),
			Run: s.listCertificates},
		{Name: "AssociateAdditionalCertificatesWithListener", Kind: api.Write, Params: write(listenerID(), ids), Run: s.associate},
		{Name: "DisassociateAdditionalCertificatesWithListener", Kind: api.Write, Params: write(listenerID(), ids), Run: s.disassociate},
	}
}

func (s service) listCertificates(c *api.Call) (any, error) {
	l, err := s.findListener(c)
	if err != nil {
		return nil, err
	}
	type view struct { //nolint:revive // names on the wire
		CertificateId, CertificateType, Status string
		IsDefault                              bool
	}
	var views []view
	for _, id := range l.Certificates {
		views = append(views, view{id, "Server", "Associated", true})
	}
	for _, id := range l.AdditionalCertificates {
		views = append(views, view{id, "Server", "Associated", false})
	}
	for _, id := range l.CAs {
		views = append(views, view{id, "CA", "Associated", true})
	}
	kind := c.Or("CertType", "Server")
	views = slices.DeleteFunc(views, func(v view) bool { return v.CertificateType != kind })
	size := c.Int("MaxResults", defaultPage)
	items, next, err := pageInPlace(c, views, size)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(items))
	for _, v := range items {
		ids = append(ids, v.CertificateId)
	}
	return append(listAnswer("Certificates", items, next, len(views), size), api.Field{Name: "CertificateIds", Value: ids}), nil
}

// certificatesOf counts the additional certificates of an instance, which share one quota.
func (s service) certificatesOf(lb *cloud.NLB, c *api.Call) int {
	n := 0
	for _, l := range s.NLBListenersOf(lb.ID, c.Now) {
		n += len(l.AdditionalCertificates)
	}
	return n
}

func (s service) associate(c *api.Call) (any, error) {
	l, lb, err := s.writableListener(c)
	if err != nil {
		return nil, err
	}
	ids := c.List("AdditionalCertificateIds")
	for _, id := range ids {
		if _, ok := s.Certificates.Get(id); !ok {
			return nil, notFound("Certificate", id)
		}
		if slices.Contains(l.AdditionalCertificates, id) || slices.Contains(l.Certificates, id) {
			return nil, api.BadRequest("ResourceAlreadyAssociated.Certificate", "The listener %s has %s already.", l.ID, id)
		}
	}
	if s.certificatesOf(lb, c)+len(ids) > s.Limits.CertificatesPerNLB {
		return nil, quota("nlb_quota_listener_additional_certificate_num", s.Limits.CertificatesPerNLB)
	}
	return s.changeCertificates(c, l, lb, append(slices.Clone(l.AdditionalCertificates), ids...))
}

func (s service) disassociate(c *api.Call) (any, error) {
	l, lb, err := s.writableListener(c)
	if err != nil {
		return nil, err
	}
	ids := c.List("AdditionalCertificateIds")
	left := slices.DeleteFunc(slices.Clone(l.AdditionalCertificates), func(id string) bool { return slices.Contains(ids, id) })
	return s.changeCertificates(c, l, lb, left)
}

func (s service) changeCertificates(c *api.Call, l *cloud.NLBListener, lb *cloud.NLB, ids []string) (any, error) {
	return checked(c, func() (any, error) {
		if applies(c) {
			l.AdditionalCertificates = ids
		}
		before := l.Phase.At(c.Now)
		l.Phase = s.transition(c, cloud.NLBConfiguring, before, before)
		return s.configuring(c, lb)
	})
}
