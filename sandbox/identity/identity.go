// Package identity gives a program that runs beside a sandbox the identity of a published manifest: its ServiceAccount with exactly the
// rights that a user's cluster grants it.
//
// It runs nothing and applies no workload.
package identity

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

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
	objects, err := decode(opts.Manifest)
	if err != nil {
		return Identity{}, fmt.Errorf("decode the manifest of a program: %w", err)
	}
	var first *corev1.ServiceAccount
	for _, object := range objects {
		if err = create(ctx, opts.Client, object); err != nil {
			return Identity{}, fmt.Errorf("apply the identity of a program: %w", err)
		}
		if sa, ok := object.(*corev1.ServiceAccount); ok && first == nil {
			first = sa
		}
	}
	if first == nil {
		return Identity{}, errors.New("the manifest of a program has no ServiceAccount")
	}
	token, err := opts.Client.CoreV1().ServiceAccounts(first.Namespace).CreateToken(ctx, first.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
		metav1.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("request a token for ServiceAccount %s/%s: %w", first.Namespace, first.Name, err)
	}
	granted := Identity{Kubeconfig: filepath.Join(opts.Dir, first.Name+".kubeconfig"), Account: first.Namespace + "/" + first.Name}
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

// decode returns the objects of a manifest that this program's scheme knows; custom resources are left out.
func decode(manifest []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		switch {
		case runtime.IsNotRegisteredError(err), runtime.IsMissingKind(err): // a custom resource, or a comment
		case err != nil:
			return nil, err
		default:
			objects = append(objects, object)
		}
	}
}

// create creates an object that belongs to a program's identity, if it is one. One that exists is left as it is.
func create(ctx context.Context, client kubernetes.Interface, object runtime.Object) error {
	var err error
	switch o := object.(type) {
	case *corev1.ServiceAccount:
		o.Namespace = orDefault(o.Namespace)
		_, err = client.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.ClusterRole:
		_, err = client.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.ClusterRoleBinding:
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.Role:
		_, err = client.RbacV1().Roles(orDefault(o.Namespace)).Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.RoleBinding:
		_, err = client.RbacV1().RoleBindings(orDefault(o.Namespace)).Create(ctx, o, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// orDefault is where kubectl would put an object.
func orDefault(namespace string) string {
	if namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}
