package chart

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// container is a pod's only container as a process: light nodes run none. It has the pod's volumes, environment, flags and identity.
type container struct {
	*sandbox
	namespace string
	spec      corev1.PodSpec
	dir       string
	// paths are the mount paths with the directories that stand for them.
	paths []string
	port  int
}

func (s *sandbox) container(namespace string, spec corev1.PodSpec) *container {
	s.Helper()
	c := &container{sandbox: s, namespace: namespace, spec: spec, dir: s.TempDir()}
	for _, mount := range spec.Containers[0].VolumeMounts {
		dir := filepath.Join(c.dir, mount.Name)
		c.paths = append(c.paths, mount.MountPath, dir)
		for _, volume := range spec.Volumes {
			if volume.Name == mount.Name {
				c.mount(volume, dir)
			}
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	c.port = listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is TCP
	if err := listener.Close(); err != nil {
		s.Fatal(err)
	}
	return c
}

// mount writes what a volume holds, as the kubelet does.
func (c *container) mount(volume corev1.Volume, dir string) {
	c.Helper()
	files := map[string][]byte{}
	switch {
	case volume.ConfigMap != nil:
		object, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(c.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			c.Fatal(err)
		}
		for name, text := range object.Data {
			files[name] = []byte(text)
		}
	case volume.Secret != nil:
		object, err := c.client.CoreV1().Secrets(c.namespace).Get(c.Context(), volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			c.Fatal(err)
		}
		for name, text := range object.Data {
			files[name] = text
		}
		for _, item := range volume.Secret.Items {
			files[item.Path] = object.Data[item.Key]
		}
	case volume.Projected != nil:
		source := volume.Projected.Sources[0].ServiceAccountToken
		files[source.Path] = []byte(c.token(c.namespace, c.spec.ServiceAccountName, source.Audience))
	default:
		c.Fatalf("volume %+v has a kind that no test knows", volume)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			c.Fatal(err)
		}
	}
}

// token is one of a ServiceAccount, for the API server or for another audience.
func (s *sandbox) token(namespace, account string, audiences ...string) string {
	s.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences,
		ExpirationSeconds: ptr.To[int64](3600)}}
	got, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(s.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return got.Status.Token
}

// inside replaces mount paths.
func (c *container) inside(text string) string { return strings.NewReplacer(c.paths...).Replace(text) }

func (c *container) env() []string {
	c.Helper()
	var env []string
	for _, variable := range c.spec.Containers[0].Env {
		value := c.inside(variable.Value)
		switch from := variable.ValueFrom; {
		case from == nil:
		case from.ResourceFieldRef != nil: // limits.memory, the only one
			value = fmt.Sprint(c.spec.Containers[0].Resources.Limits.Memory().Value())
		default:
			secret, err := c.client.CoreV1().Secrets(c.namespace).Get(c.Context(), from.SecretKeyRef.Name, metav1.GetOptions{})
			if err != nil {
				c.Fatal(err)
			}
			value = string(secret.Data[from.SecretKeyRef.Key])
		}
		env = append(env, variable.Name+"="+value)
	}
	return env
}

// args are the container's, and those that stand for running in a cluster on a port of its own.
func (c *container) args() []string {
	c.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthorityData: c.config.CAData}
	config.AuthInfos["program"] = &clientcmdapi.AuthInfo{Token: c.token(c.namespace, c.spec.ServiceAccountName)}
	config.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "program"}
	config.CurrentContext = "sandbox"
	path := filepath.Join(c.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		c.Fatal(err)
	}
	var args []string
	for _, arg := range append(c.spec.Containers[0].Command[1:], c.spec.Containers[0].Args...) {
		args = append(args, c.inside(arg))
	}
	// In a cluster all three are the pod's own identity.
	args = append(args, "--kubeconfig="+path, "--authentication-kubeconfig="+path, "--authorization-kubeconfig="+path)
	return append(args, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.port))
}

// start runs the container of the manager until it leads.
func (c *container) start() *process {
	c.Helper()
	leases := c.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	_ = leases.Delete(c.Context(), "cloud-controller-manager", metav1.DeleteOptions{}) // of one that has ended
	p := start(c.T, c.env(), program(c.T, "cloud-controller-manager"), c.args()...)
	c.until("the manager leads", func(ctx context.Context) string {
		select {
		case <-p.done:
			c.Fatalf("the manager has ended: %s", p.output.String())
		default:
		}
		lease, err := leases.Get(ctx, "cloud-controller-manager", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return "nobody holds the lease"
		}
		return ""
	})
	return p
}
