package alicloud

import (
	"context"
	"time"
)

// Certificate is a server certificate that was uploaded to CLB.
type Certificate struct {
	ID string
	// Expires is when clients begin to refuse the certificate; zero where the answer does not say.
	Expires time.Time
}

// DescribeServerCertificate returns the certificate, and false when the region has none with that id.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-describeservercertificates.
func (c *Client) DescribeServerCertificate(ctx context.Context, id string) (Certificate, bool, error) {
	out := &describeCertificatesResponse{answer: newAnswer()}
	if err := c.call(ctx, "DescribeServerCertificates", productSLB, params{"ServerCertificateId": id}, out); err != nil {
		return Certificate{}, false, err
	}
	for _, wire := range out.ServerCertificates.ServerCertificate {
		if wire.ServerCertificateId != id {
			continue
		}
		found := Certificate{ID: id}
		if wire.ExpireTimeStamp > 0 {
			found.Expires = time.UnixMilli(wire.ExpireTimeStamp)
		}
		return found, true, nil
	}
	return Certificate{}, false, nil
}

type describeCertificatesResponse struct {
	answer
	ServerCertificates struct {
		ServerCertificate []struct {
			ServerCertificateId string
			ExpireTimeStamp     int64
		}
	}
}

// DomainExtension gives an HTTPS listener a certificate of its own for one domain.
type DomainExtension struct {
	// ID is empty where the extension is yet to be made.
	ID string
	// Domain is a host name, exact or "*.example.com".
	Domain        string
	CertificateID string
}

// DescribeDomainExtensions returns the extensions of the HTTPS listener on a port, or an error for which [IsNotFound]
// holds when there is no such listener.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-describedomainextensions.
func (c *Client) DescribeDomainExtensions(ctx context.Context, loadBalancerID string, port int) ([]DomainExtension, error) {
	in := params{"LoadBalancerId": loadBalancerID}.setInt("ListenerPort", port)
	out := &describeExtensionsResponse{answer: newAnswer()}
	if err := c.call(ctx, "DescribeDomainExtensions", productSLB, in, out); err != nil {
		return nil, err
	}
	var found []DomainExtension
	for _, wire := range out.DomainExtensions.DomainExtension {
		found = append(found, DomainExtension{ID: wire.DomainExtensionId, Domain: wire.Domain, CertificateID: wire.ServerCertificateId})
	}
	return found, nil
}

type describeExtensionsResponse struct {
	answer
	DomainExtensions struct {
		DomainExtension []struct{ DomainExtensionId, Domain, ServerCertificateId string }
	}
}

// CreateDomainExtension adds an extension to the HTTPS listener on a port and returns its id. The action takes no client
// token: after an ambiguous error the extension may exist.
func (c *Client) CreateDomainExtension(ctx context.Context, loadBalancerID string, port int, extension DomainExtension) (string, error) {
	in := params{"LoadBalancerId": loadBalancerID, "Domain": extension.Domain,
		"ServerCertificateId": extension.CertificateID}.setInt("ListenerPort", port)
	out := &createExtensionResponse{answer: newAnswer()}
	if err := c.call(ctx, "CreateDomainExtension", productSLB, in, out); err != nil {
		return "", err
	}
	return out.DomainExtensionId, nil
}

type createExtensionResponse struct {
	answer
	DomainExtensionId string
}

// SetDomainExtension gives the extension another certificate; its domain stays.
func (c *Client) SetDomainExtension(ctx context.Context, id, certificateID string) error {
	return c.slbWrite(ctx, "SetDomainExtensionAttribute", params{"DomainExtensionId": id, "ServerCertificateId": certificateID})
}

// DeleteDomainExtension removes an extension: clients of its domain get the listener's own certificate.
func (c *Client) DeleteDomainExtension(ctx context.Context, id string) error {
	return c.slbWrite(ctx, "DeleteDomainExtension", params{"DomainExtensionId": id})
}
