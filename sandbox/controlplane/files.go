package controlplane

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/pki"
)

// files are the paths of what the components read from disk, and the administrator's identity.
type files struct {
	dir                     string
	ca                      string
	serverCert, serverKey   string
	proxyCert, proxyKey     string
	kubeletCert, kubeletKey string
	serviceAccountKey       string
	auditPolicy             string // "" without an audit log

	authority *pki.Authority
	admin     pki.Pair
}

// writeFiles makes all keys and certificates of a control plane and writes those that components read from disk.
func writeFiles(opts Options) (*files, error) {
	serviceIP, err := firstServiceIP(opts.ServiceCIDR)
	if err != nil {
		return nil, err
	}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), serviceIP}
	if opts.Network != nil {
		addresses = append(addresses, opts.Network.Address.AsSlice())
	}
	authority, err := pki.NewAuthority("sandbox-ca")
	if err != nil {
		return nil, err
	}
	f := &files{dir: opts.Dir, authority: authority}
	if f.admin, err = authority.Issue(pki.Subject{CommonName: "sandbox-admin", Organization: []string{"system:masters"}}); err != nil {
		return nil, err
	}
	f.ca = f.path("ca.crt")
	if err = write(f.ca, authority.CertPEM()); err != nil {
		return nil, err
	}
	for _, pair := range []struct {
		name      string
		subject   pki.Subject
		cert, key *string
	}{
		{"apiserver", pki.Subject{
			CommonName: "kube-apiserver",
			IPs:        addresses,
			DNSNames:   []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		}, &f.serverCert, &f.serverKey},
		{"front-proxy-client", pki.Subject{CommonName: "front-proxy-client"}, &f.proxyCert, &f.proxyKey},
		{"apiserver-kubelet-client", pki.Subject{
			CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"},
		}, &f.kubeletCert, &f.kubeletKey},
	} {
		*pair.cert, *pair.key = f.path(pair.name+".crt"), f.path(pair.name+".key")
		if err = writePair(authority, pair.subject, *pair.cert, *pair.key); err != nil {
			return nil, err
		}
	}
	signingKey, err := pki.SigningKey()
	if err != nil {
		return nil, err
	}
	f.serviceAccountKey = f.path("service-account.key")
	if err := write(f.serviceAccountKey, signingKey); err != nil {
		return nil, err
	}
	if opts.AuditLog != "" {
		f.auditPolicy = f.path("audit-policy.yaml")
		return f, write(f.auditPolicy, []byte(auditPolicy))
	}
	return f, nil
}

// auditPolicy records who asked for what, without contents, of service accounts only.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }

// kubeconfig is for one identity, with all certificates inside so that the file can be moved.
func (f *files) kubeconfig(server string, user pki.Pair) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: f.authority.CertPEM()}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: user.Cert, ClientKeyData: user.Key}
	config.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "user"}
	config.CurrentContext = "sandbox"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return content, nil
}

// firstServiceIP is the address of the Service kubernetes.default, which the API server's certificate must name.
func firstServiceIP(cidr string) (net.IP, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("service CIDR %q: %w", cidr, err)
	}
	return prefix.Masked().Addr().Next().AsSlice(), nil
}

func writePair(authority *pki.Authority, subject pki.Subject, certFile, keyFile string) error {
	pair, err := authority.Issue(subject)
	if err != nil {
		return err
	}
	if err := write(certFile, pair.Cert); err != nil {
		return err
	}
	return write(keyFile, pair.Key)
}

// write keeps everything readable by the owner only: most of these files are keys.
func write(file string, content []byte) error {
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("write the control plane's files: %w", err)
	}
	return nil
}
