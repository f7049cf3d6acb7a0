package slb

import (
	"errors"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (s service) certificateActions() []api.Action {
	list := func(id string) []api.Param {
		return []api.Param{api.Str(id), api.Str("ResourceGroupId"), cloud.TagParams(cloud.MaxTags)}
	}
	return []api.Action{
		{Name: "DescribeServerCertificates", Kind: api.Read, Params: list("ServerCertificateId"), Run: s.describeServerCertificates},
		{Name: "DescribeCACertificates", Kind: api.Read, Params: list("CACertificateId"), Run: s.describeCACertificates},
		{Name: "UploadServerCertificate", Kind: api.Write, Params: []api.Param{
			api.Str("ServerCertificate"), api.Str("PrivateKey"), api.Str("ServerCertificateName", api.Len(1, 80)), api.Str("ResourceGroupId"),
			api.Str("AliCloudCertificateId"), api.Str("AliCloudCertificateName"), api.Str("AliCloudCertificateRegionId"), api.Str("StandardType"),
			cloud.TagParams(cloud.MaxTags),
		}, Run: s.uploadServerCertificate},
		{Name: "DeleteServerCertificate", Kind: api.Write, Params: []api.Param{api.Str("ServerCertificateId", api.Required)},
			Run: s.deleteServerCertificate},
	}
}

type alternativeNames struct{ SubjectAlternativeName []string }

// certificateView holds what answers about server certificates have.
type certificateView struct { //nolint:revive // names on the wire
	ServerCertificateId, ServerCertificateName string
	CommonName, Fingerprint                    string
	ExpireTime                                 string
	ExpireTimeStamp                            int64
	CreateTime                                 string
	CreateTimeStamp                            int64
	RegionId, ResourceGroupId                  string
	IsAliCloudCertificate                      int
	AliCloudCertificateId                      string
	AliCloudCertificateName                    string
	SubjectAlternativeNames                    alternativeNames
	Tags                                       tagList
}

func (s service) certificateView(c *cloud.Certificate) certificateView {
	v := certificateView{
		ServerCertificateId: c.ID, ServerCertificateName: c.Name, CommonName: c.CommonName, Fingerprint: c.Fingerprint,
		ExpireTime: cloud.Timestamp(c.Expires), ExpireTimeStamp: c.Expires.UnixMilli(),
		CreateTime: cloud.Timestamp(c.Created), CreateTimeStamp: c.Created.UnixMilli(), RegionId: s.Region,
		ResourceGroupId: c.ResourceGroupID, AliCloudCertificateId: c.AliCloudID, AliCloudCertificateName: c.AliCloudName,
	}
	if c.AliCloudID != "" {
		v.IsAliCloudCertificate = 1
	}
	v.SubjectAlternativeNames.SubjectAlternativeName = append([]string{}, c.SANs...)
	v.Tags.Tag = c.Tags.Views()
	return v
}

func (s service) describeServerCertificates(c *api.Call) (any, error) {
	var answer struct {
		ServerCertificates struct{ ServerCertificate []certificateView }
	}
	answer.ServerCertificates.ServerCertificate = []certificateView{}
	for _, cert := range s.certificates(c, false, c.Str("ServerCertificateId")) {
		answer.ServerCertificates.ServerCertificate = append(answer.ServerCertificates.ServerCertificate, s.certificateView(cert))
	}
	return answer, nil
}

type caView struct { //nolint:revive // names on the wire
	CACertificateId, CACertificateName, CommonName, Fingerprint string
	ExpireTime                                                  string
	ExpireTimeStamp                                             int64
	CreateTime                                                  string
	CreateTimeStamp                                             int64
	RegionId, ResourceGroupId                                   string
	Tags                                                        tagList
}

func (s service) describeCACertificates(c *api.Call) (any, error) {
	var answer struct {
		CACertificates struct{ CACertificate []caView }
	}
	answer.CACertificates.CACertificate = []caView{}
	for _, cert := range s.certificates(c, true, c.Str("CACertificateId")) {
		v := s.certificateView(cert)
		answer.CACertificates.CACertificate = append(answer.CACertificates.CACertificate, caView{
			cert.ID, cert.Name, cert.CommonName, cert.Fingerprint, v.ExpireTime, v.ExpireTimeStamp, v.CreateTime, v.CreateTimeStamp,
			s.Region, cert.ResourceGroupID, v.Tags,
		})
	}
	return answer, nil
}

func (s service) certificates(c *api.Call, ca bool, id string) []*cloud.Certificate {
	tags := cloud.TagsIn(c)
	return s.Certificates.Select(func(cert *cloud.Certificate) bool {
		return cert.CA == ca && (id == "" || cert.ID == id) && cert.Tags.Match(tags) &&
			(!c.Has("ResourceGroupId") || c.Str("ResourceGroupId") == cert.ResourceGroupID)
	})
}

func (s service) uploadServerCertificate(c *api.Call) (any, error) {
	cert := &cloud.Certificate{
		Object: s.NewObject("cert"), Name: c.Str("ServerCertificateName"), ResourceGroupID: c.Or("ResourceGroupId", "rg-emulator"),
		AliCloudID: c.Str("AliCloudCertificateId"), AliCloudName: c.Str("AliCloudCertificateName"),
	}
	if cert.AliCloudID != "" {
		cert.Expires = c.Now.AddDate(1, 0, 0)
	} else {
		for _, name := range []string{"ServerCertificate", "PrivateKey"} {
			if !c.Has(name) {
				return nil, api.Missing(name)
			}
		}
		err := cert.ReadPEM(c.Str("ServerCertificate"), c.Str("PrivateKey"))
		if errors.Is(err, cloud.ErrKeyMismatch) {
			return nil, api.BadRequest("CertificateNotMatchPrivateKey", "%v.", err)
		}
	}
	cert.Tags = cert.Tags.With(cloud.TagsIn(c))
	s.Certificates.Add(cert)
	return s.certificateView(cert), nil
}

// checkCertificates checks that the certificates of an HTTPS listener exist.
func (s service) checkCertificates(a api.Params) *api.Error {
	for name, ca := range map[string]bool{"ServerCertificateId": false, "CACertificateId": true} {
		if id := a[name]; id != "" {
			if cert, ok := s.Certificates.Get(id); !ok || cert.CA != ca {
				return api.BadRequest("CertificateNotExist", "The specified %s %s does not exist.", name, id)
			}
		}
	}
	return nil
}

func (s service) deleteServerCertificate(c *api.Call) (any, error) {
	id := c.Str("ServerCertificateId")
	if bad := s.checkCertificates(api.Params{"ServerCertificateId": id}); bad != nil {
		return nil, bad
	}
	if len(s.ListenersWithCertificate(id)) > 0 {
		return nil, api.BadRequest("CertificateAndPrivateKeyIsRefered", "The specified certificate is bound to listeners. You cannot delete it.")
	}
	if len(s.Extensions.Select(func(x *cloud.DomainExtension) bool { return x.CertificateID == id })) > 0 {
		return nil, api.BadRequest("CertificateRelatedDomainExtensionExist", "The domainExtension related with this ServerCertificate exists.")
	}
	cert, _ := s.Certificates.Get(id)
	s.Certificates.Delete(cert)
	return done()
}
