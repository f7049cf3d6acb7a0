package alicloud

import (
	"context"
	"fmt"
)

// Protocols of listeners of an NLB.
const (
	NLBTCP    = "TCP"
	NLBUDP    = "UDP"
	NLBTCPSSL = "TCPSSL"
)

// Statuses of a listener of an NLB.
const (
	NLBListenerRunning  = "Running"
	NLBListenerStopped  = "Stopped"
	NLBListenerDeleting = "Deleting"
)

// MaxCertificatesPerCall is how many additional certificates one call takes: the official CCM sends 15.
const MaxCertificatesPerCall = 15

// NLBListener is a listener of an NLB, on one port or on a range of ports.
type NLBListener struct {
	ID             string
	LoadBalancerID string
	// Port is 0 for a listener on the range from StartPort to EndPort.
	Port, StartPort, EndPort int
	// Protocol is [NLBTCP], [NLBUDP] or [NLBTCPSSL].
	Protocol string
	Status   string
	NLBListenerSettings
}

// NLBListenerSettings are what a write sets of a listener; nil leaves a setting as it is. What was read has none that is nil but
// lists.
type NLBListenerSettings struct {
	Description   *string
	ServerGroupID *string
	// IdleTimeout is in seconds: 10 to 900, for UDP 10 to 20.
	IdleTimeout *int
	// Cps bounds the new connections per second in each zone, 0 to 1000000; 0 is no bound.
	Cps           *int
	ProxyProtocol *bool
	// ProxyProtocolV2 says what a PROXY header has besides addresses.
	ProxyProtocolV2 *ProxyProtocolV2
	// The others are of TCPSSL listeners only.
	SecurityPolicyID *string
	CertificateIDs   []string
	CACertificateIDs []string
	CAEnabled        *bool
	ALPNEnabled      *bool
	ALPNPolicy       *string
}

// ProxyProtocolV2 says what a PROXY header has besides addresses. It is one parameter of the API, a JSON object.
type ProxyProtocolV2 struct {
	PrivateLinkEpID  bool `json:"Ppv2PrivateLinkEpIdEnabled"`
	PrivateLinkEpsID bool `json:"Ppv2PrivateLinkEpsIdEnabled"`
	VPCID            bool `json:"Ppv2VpcIdEnabled"`
}

// ListNLBListeners returns the listeners of at most [MaxNLBQuery] NLBs.
func (c *Client) ListNLBListeners(ctx context.Context, loadBalancers []string) ([]NLBListener, error) {
	if len(loadBalancers) == 0 || len(loadBalancers) > MaxNLBQuery {
		return nil, fmt.Errorf("query of the listeners of %d load balancers: the API takes 1 to %d", len(loadBalancers), MaxNLBQuery)
	}
	in := params{}.setInt("MaxResults", nlbPageSize).setList("LoadBalancerIds", loadBalancers)
	found, err := tokenPages("ListListeners", in, func(l wireNLBListener) string {
		return l.ListenerId
	}, func() (tokenPage[wireNLBListener], error) {
		out := &struct {
			answer
			tokens
			Listeners []wireNLBListener
		}{answer: newAnswer()}
		err := c.call(ctx, "ListListeners", productNLB, in, out)
		return tokenPage[wireNLBListener]{out.answer, out.tokens, out.Listeners}, err
	})
	if err != nil {
		return nil, err
	}
	listeners := make([]NLBListener, 0, len(found))
	for i := range found {
		listeners = append(listeners, found[i].listener())
	}
	return listeners, notAmong("ListListeners", loadBalancers, listeners, func(l NLBListener) string { return l.LoadBalancerID })
}

type wireNLBListener struct {
	ListenerId, LoadBalancerId, ListenerProtocol, ListenerDescription string
	ListenerStatus, ServerGroupId                                     string
	ListenerPort, StartPort, EndPort, IdleTimeout, Cps                int
	CertificateIds, CaCertificateIds                                  []string
	CaEnabled, AlpnEnabled, ProxyProtocolEnabled                      bool
	AlpnPolicy, SecurityPolicyId                                      string
	ProxyProtocolV2Config                                             ProxyProtocolV2
}

func (w *wireNLBListener) listener() NLBListener {
	return NLBListener{
		ID: w.ListenerId, LoadBalancerID: w.LoadBalancerId, Port: w.ListenerPort, StartPort: w.StartPort, EndPort: w.EndPort,
		Protocol: w.ListenerProtocol, Status: w.ListenerStatus,
		NLBListenerSettings: NLBListenerSettings{
			Description: &w.ListenerDescription, ServerGroupID: &w.ServerGroupId, IdleTimeout: &w.IdleTimeout, Cps: &w.Cps,
			ProxyProtocol: &w.ProxyProtocolEnabled, ProxyProtocolV2: &w.ProxyProtocolV2Config, SecurityPolicyID: &w.SecurityPolicyId,
			CertificateIDs: w.CertificateIds, CACertificateIDs: w.CaCertificateIds, CAEnabled: &w.CaEnabled, ALPNEnabled: &w.AlpnEnabled,
			ALPNPolicy: &w.AlpnPolicy,
		},
	}
}

func (s *NLBListenerSettings) params(in params) params {
	in.setText("ListenerDescription", s.Description).setText("ServerGroupId", s.ServerGroupID).setNumber("IdleTimeout", s.IdleTimeout).
		setNumber("Cps", s.Cps).setBool("ProxyProtocolEnabled", s.ProxyProtocol).setText("SecurityPolicyId", s.SecurityPolicyID).
		setList("CertificateIds", s.CertificateIDs).setList("CaCertificateIds", s.CACertificateIDs).setBool("CaEnabled", s.CAEnabled).
		setBool("AlpnEnabled", s.ALPNEnabled).setText("AlpnPolicy", s.ALPNPolicy)
	if s.ProxyProtocolV2 != nil {
		in.setJSON("ProxyProtocolV2Config", s.ProxyProtocolV2)
	}
	return in
}

// CreateNLBListener begins to make a listener, which then runs by itself. For the token see [Client.CreateNLB].
func (c *Client) CreateNLBListener(ctx context.Context, l NLBListener, token string) (id string, job Job, err error) {
	in := l.creation()
	in["ClientToken"] = token
	out, err := c.nlbBeginWrite(ctx, "CreateListener", in)
	if err != nil {
		return "", "", err
	}
	if out.ListenerId == "" {
		return "", "", out.unusable("CreateListener", "the answer has no ListenerId")
	}
	return out.ListenerId, Job(out.JobId), nil
}

// TryNLBListener returns why the cloud would not make a listener, nil where it would: a dry run.
func (c *Client) TryNLBListener(ctx context.Context, l NLBListener) error {
	in := l.creation()
	in["DryRun"] = "true"
	err := c.call(ctx, "CreateListener", productNLB, in, plainAnswer())
	if HasCode(err, "DryRunOperation") {
		return nil
	}
	return err
}

// creation are the parameters with which a listener is made.
func (l *NLBListener) creation() params {
	in := l.params(params{"LoadBalancerId": l.LoadBalancerID, "ListenerProtocol": l.Protocol}).setInt("ListenerPort", l.Port)
	if l.Port == 0 {
		in.setInt("StartPort", l.StartPort).setInt("EndPort", l.EndPort)
	}
	return in
}

// UpdateNLBListener begins to change settings of a listener.
func (c *Client) UpdateNLBListener(ctx context.Context, id string, settings NLBListenerSettings) (Job, error) {
	return c.nlbJobWrite(ctx, "UpdateListenerAttribute", settings.params(params{"ListenerId": id}))
}

// DeleteNLBListener begins to remove a listener.
func (c *Client) DeleteNLBListener(ctx context.Context, id string) (Job, error) {
	return c.nlbJobWrite(ctx, "DeleteListener", params{"ListenerId": id})
}

// StartNLBListener begins to start a stopped listener.
func (c *Client) StartNLBListener(ctx context.Context, id string) (Job, error) {
	return c.nlbJobWrite(ctx, "StartListener", params{"ListenerId": id})
}

// AdditionalCertificates returns the ids of the certificates of a TCPSSL listener besides its own.
func (c *Client) AdditionalCertificates(ctx context.Context, listener string) ([]string, error) {
	type certificate struct {
		CertificateId, CertificateType string
		IsDefault                      bool
	}
	in := params{"ListenerId": listener}.setInt("MaxResults", nlbSmallPage)
	found, err := tokenPages("ListListenerCertificates", in, func(c certificate) string {
		return fmt.Sprint(c.CertificateType, " ", c.CertificateId, " ", c.IsDefault)
	}, func() (tokenPage[certificate], error) {
		out := &struct {
			answer
			tokens
			Certificates []certificate
		}{answer: newAnswer()}
		err := c.call(ctx, "ListListenerCertificates", productNLB, in, out)
		return tokenPage[certificate]{out.answer, out.tokens, out.Certificates}, err
	})
	var ids []string
	for _, certificate := range found {
		if !certificate.IsDefault && certificate.CertificateType != "CA" {
			ids = append(ids, certificate.CertificateId)
		}
	}
	return ids, err
}

// AddCertificates begins to add certificates to a TCPSSL listener.
func (c *Client) AddCertificates(ctx context.Context, listener string, ids []string) (Job, error) {
	return c.nlbJobWrite(ctx, "AssociateAdditionalCertificatesWithListener",
		params{"ListenerId": listener}.setList("AdditionalCertificateIds", ids))
}

// RemoveCertificates begins to remove additional certificates from a TCPSSL listener.
func (c *Client) RemoveCertificates(ctx context.Context, listener string, ids []string) (Job, error) {
	return c.nlbJobWrite(ctx, "DisassociateAdditionalCertificatesWithListener",
		params{"ListenerId": listener}.setList("AdditionalCertificateIds", ids))
}
