// Package identity gives a program that runs beside a sandbox the identity of a published manifest: its ServiceAccount with exactly the
// rights that a user's cluster grants it.
//
// It runs nothing and applies no workload.
package identity

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/manifest"
)

const accountKind = "ServiceAccount"

// tokenSeconds is how long a program's token is good for: longer than any demo or test.
const tokenSeconds = 3600

// Options configures Grant. All are required.
type Options struct {
	// Client is the administrator's, Config says where the API server is.
	Client kubernetes.Interface
	Config *rest.Config
	// Manifest is YAML with the ServiceAccount and its roles; what else it holds is left out.
	Manifest []byte
	// Dir takes the kubeconfig.
	Dir string
}

// Identity is what a program runs with.
type Identity struct {
	// Kubeconfig is the path of a kubeconfig with a token of the ServiceAccount and nothing else to authenticate with.
	Kubeconfig string
	// Account is the ServiceAccount as namespace/name.
	Account string
}

// Grant applies the ServiceAccounts and roles of a manifest and writes a kubeconfig for its first ServiceAccount. What exists already is
// left as it is.
func Grant(ctx context.Context, opts Options) (Identity, error) {
	objects, err := manifest.Create(ctx, opts.Config, opts.Manifest, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == accountKind || o.GroupVersionKind().Group == rbacv1.GroupName
	})
	if err != nil {
		return Identity{}, fmt.Errorf("apply the identity of a program: %w", err)
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == accountKind })
	if i < 0 {
		return Identity{}, errors.New("the manifest of a program has no ServiceAccount")
	}
	namespace, name := objects[i].GetNamespace(), objects[i].GetName()
	token, err := opts.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
		metav1.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("request a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	granted := Identity{Kubeconfig: filepath.Join(opts.Dir, name+".kubeconfig"), Account: namespace + "/" + name}
	return granted, WriteKubeconfig(granted.Kubeconfig, opts.Config, token.Status.Token)
}

// WriteKubeconfig writes a kubeconfig with a token and nothing else to authenticate with.
func WriteKubeconfig(path string, server *rest.Config, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData}
	config.AuthInfos["program"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "program"}
	config.CurrentContext = "sandbox"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig of a program: %w", err)
	}
	return nil
}
