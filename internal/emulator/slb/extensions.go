package slb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (s service) extensionActions() []api.Action {
	id := api.Str("DomainExtensionId", api.Required)
	cert := api.Str("ServerCertificateId", api.Required)
	return []api.Action{
		{Name: "DescribeDomainExtensions", Kind: api.Read, Params: []api.Param{
			lbID(), api.Num("ListenerPort", 1, 65535, api.Required), api.Str("DomainExtensionId"),
		}, Run: s.describeExtensions},
		{Name: "CreateDomainExtension", Kind: api.Write, Params: []api.Param{
			lbID(), api.Num("ListenerPort", 1, 65535, api.Required), api.Str("Domain", api.Required, api.Len(3, 80)), cert,
		}, Run: s.createExtension},
		{Name: "SetDomainExtensionAttribute", Kind: api.Write, Params: []api.Param{id, cert}, Run: s.setExtension},
		{Name: "DeleteDomainExtension", Kind: api.Write, Params: []api.Param{id}, Run: s.deleteExtension},
	}
}

type extensionView struct { //nolint:revive // names on the wire
	DomainExtensionId, Domain, ServerCertificateId string
	Certificates                                   struct {
		Certificate []struct{ CertificateId string }
	}
	ServerCertificates struct {
		ServerCertificate []struct{ CertificateId string }
	}
}

func newExtensionView(x *cloud.DomainExtension) extensionView {
	v := extensionView{DomainExtensionId: x.ID, Domain: x.Domain, ServerCertificateId: x.CertificateID}
	v.Certificates.Certificate = []struct{ CertificateId string }{}             //nolint:revive // names on the wire
	v.ServerCertificates.ServerCertificate = []struct{ CertificateId string }{} //nolint:revive // names on the wire
	return v
}

// extensionsOf returns the extensions of one listener.
func (s service) extensionsOf(lb string, port int) []*cloud.DomainExtension {
	return s.Extensions.Select(func(x *cloud.DomainExtension) bool { return x.LoadBalancerID == lb && x.ListenerPort == port })
}

// extensionViews describes the extensions of an HTTPS listener; other listeners have none.
func (s service) extensionViews(lb string, l *cloud.Listener) []extensionView {
	views := []extensionView{}
	if l.Protocol == "https" {
		for _, x := range s.extensionsOf(lb, l.Port) {
			views = append(views, newExtensionView(x))
		}
	}
	return views
}

// httpsListener finds the HTTPS listener of a call.
func (s service) httpsListener(c *api.Call) (*cloud.Listener, error) {
	lb, err := s.loadBalancer(c)
	if err != nil {
		return nil, err
	}
	l, ok := lb.Listeners[cloud.ListenerKey{Port: c.Int("ListenerPort", 0), Protocol: "https"}]
	if !ok {
		return nil, listenerNotFound()
	}
	return l, nil
}

func (s service) describeExtensions(c *api.Call) (any, error) {
	if _, err := s.httpsListener(c); err != nil {
		return nil, err
	}
	var answer struct {
		DomainExtensions struct{ DomainExtension []extensionView }
	}
	answer.DomainExtensions.DomainExtension = []extensionView{}
	for _, x := range s.extensionsOf(c.Str("LoadBalancerId"), c.Int("ListenerPort", 0)) {
		if !c.Has("DomainExtensionId") || c.Str("DomainExtensionId") == x.ID {
			answer.DomainExtensions.DomainExtension = append(answer.DomainExtensions.DomainExtension, newExtensionView(x))
		}
	}
	return answer, nil
}

func (s service) createExtension(c *api.Call) (any, error) {
	l, err := s.httpsListener(c)
	if err != nil {
		return nil, err
	}
	if bad := s.checkExtensionCertificate(c); bad != nil {
		return nil, bad
	}
	have := s.extensionsOf(c.Str("LoadBalancerId"), l.Port)
	for _, x := range have {
		if x.Domain == c.Str("Domain") {
			return nil, api.BadRequest("DomainExtensionAlreadyExists", "The listener has an extension for %s already.", x.Domain)
		}
	}
	if len(have) >= s.Limits.DomainExtensions {
		return nil, api.BadRequest("DomainExtensionNumberOverLimit", "The listener has %d domain extensions, which is its quota.", len(have))
	}
	x := &cloud.DomainExtension{
		Object: s.NewObject("de"), LoadBalancerID: c.Str("LoadBalancerId"), ListenerPort: l.Port,
		Domain: c.Str("Domain"), CertificateID: c.Str("ServerCertificateId"),
	}
	s.Extensions.Add(x)
	return struct { //nolint:revive // names on the wire
		DomainExtensionId string
		ListenerPort      int
	}{x.ID, l.Port}, nil
}

// checkExtensionCertificate checks that the certificate exists. The code differs from that of a listener.
func (s service) checkExtensionCertificate(c *api.Call) *api.Error {
	id := c.Str("ServerCertificateId")
	if cert, ok := s.Certificates.Get(id); !ok || cert.CA {
		return api.BadRequest("InvalidParameter.ServerCertificateId", "The specified ServerCertificateId %s does not exist.", id)
	}
	return nil
}

func (s service) extension(c *api.Call) (*cloud.DomainExtension, error) {
	x, ok := s.Extensions.Get(c.Str("DomainExtensionId"))
	if !ok {
		return nil, api.BadRequest("InvalidParameter.DomainExtensionId", "The specified domain extension does not exist.")
	}
	return x, nil
}

func (s service) setExtension(c *api.Call) (any, error) {
	x, err := s.extension(c)
	if err != nil {
		return nil, err
	}
	if bad := s.checkExtensionCertificate(c); bad != nil {
		return nil, bad
	}
	x.CertificateID = c.Str("ServerCertificateId")
	return done()
}

func (s service) deleteExtension(c *api.Call) (any, error) {
	x, err := s.extension(c)
	if err != nil {
		return nil, err
	}
	s.Extensions.Delete(x)
	return done()
}

// dropExtensions removes the extensions of a listener that is being deleted.
func (s service) dropExtensions(lb string, port int) {
	for _, x := range s.extensionsOf(lb, port) {
		s.Extensions.Delete(x)
	}
}
