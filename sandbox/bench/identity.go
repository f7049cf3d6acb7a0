package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
)

// tokenSeconds is how long a program's token is good for: longer than any scenario.
const tokenSeconds = 3600

// identify makes a ServiceAccount of kube-system with the roles of a published manifest, and returns the path of a kubeconfig that has
// nothing but its token.
func (w *world) identify(ctx context.Context, manifest, account string) (string, error) {
	content, err := deploy.Files.ReadFile(manifest)
	if err != nil {
		return "", fmt.Errorf("read the published manifest: %w", err)
	}
	roles, err := rolesOf(content)
	if err != nil {
		return "", fmt.Errorf("decode %s: %w", manifest, err)
	}
	reconcile := exec.CommandContext(ctx, w.self, "kubectl", "auth", "reconcile", "-f", "-")
	reconcile.Env = append(os.Environ(), "KUBECONFIG="+w.path("admin.kubeconfig"), "KUBECACHEDIR="+w.path("kubectl-cache"))
	reconcile.Stdin = bytes.NewReader(roles)
	if output, err := reconcile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("apply the roles of %s: %w: %s", manifest, err, bytes.TrimSpace(output))
	}
	accounts := w.client.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	_, err = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create the ServiceAccount %s: %w", account, err)
	}
	token, err := accounts.CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for the ServiceAccount %s: %w", account, err)
	}
	path := w.path(account + ".kubeconfig")
	return path, w.writeTokenConfig(path, token.Status.Token)
}

// rolesOf is the part of a manifest that says what programs may do. The rest needs kinds that not every cluster knows.
func rolesOf(manifest []byte) ([]byte, error) {
	var roles []byte
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return roles, nil
		}
		if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		if kind.GroupVersionKind().Group == rbacv1.GroupName {
			roles = append(append(roles, document...), "\n---\n"...)
		}
	}
}

func (w *world) writeTokenConfig(path, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["bench"] = &clientcmdapi.Cluster{Server: w.config.Host, CertificateAuthorityData: w.config.CAData}
	config.AuthInfos["program"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "program"}
	config.CurrentContext = "bench"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig of a program: %w", err)
	}
	return nil
}
