package demo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// tokenSeconds is how long a program's token is good for: longer than any demo.
const tokenSeconds = 3600

// identify gives a program the identity of a published manifest: it applies the manifest's ServiceAccounts and roles, and writes a
// kubeconfig with a token of the first ServiceAccount. It returns the kubeconfig's path and the ServiceAccount as namespace/name.
func (s *story) identify(ctx context.Context, manifest string) (path, account string, err error) {
	content, err := fs.ReadFile(s.Deploy, manifest)
	if err != nil {
		return "", "", fmt.Errorf("read the published manifest: %w", err)
	}
	objects, err := decode(content)
	if err != nil {
		return "", "", fmt.Errorf("decode %s: %w", manifest, err)
	}
	var first *corev1.ServiceAccount
	for _, object := range objects {
		if err := createIdentity(ctx, s.cluster.Client, object); err != nil {
			return "", "", fmt.Errorf("apply %s: %w", manifest, err)
		}
		if sa, ok := object.(*corev1.ServiceAccount); ok && first == nil {
			first = sa
		}
	}
	if first == nil {
		return "", "", fmt.Errorf("%s has no ServiceAccount", manifest)
	}
	token, err := s.cluster.Client.CoreV1().ServiceAccounts(first.Namespace).CreateToken(ctx, first.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
		metav1.CreateOptions{})
	if err != nil {
		return "", "", fmt.Errorf("request a token for ServiceAccount %s/%s: %w", first.Namespace, first.Name, err)
	}
	path = s.path(first.Name + ".kubeconfig")
	return path, first.Namespace + "/" + first.Name, s.writeTokenConfig(path, token.Status.Token)
}

// writeTokenConfig writes a kubeconfig with nothing but a token to authenticate with.
func (s *story) writeTokenConfig(path, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{
		Server: s.cluster.Config.Host, CertificateAuthorityData: s.cluster.Config.CAData,
	}
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

// createIdentity creates an object that belongs to a program's identity, if it is one. One that exists is left as it is.
func createIdentity(ctx context.Context, client kubernetes.Interface, object runtime.Object) error {
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
