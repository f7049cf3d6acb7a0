package podprocess_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/podprocess"
)

// program prints what it was started with, and either fails or waits for its end.
const program = `#!/bin/sh
for arg; do echo "$arg"; done
cat "$CONFIG"
echo "$CONTAINER_MEMORY_LIMIT $KEY $SLB_ENDPOINT"
[ -z "$WAIT" ] && exit 3
trap 'echo stopped; exit 0' TERM
while :; do sleep 0.05; done
`

// TestManager: a container of the manager runs with its files, its variables and the identity of its pod, on a port of its own. What it
// prints is in its log and, after a failure, in the status of the pod; it ends in order when its pod is deleted.
func TestManager(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"cloud-controller-manager", "provider-initor"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(program), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "kube-system", Name: name} }
	client := fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: meta("cloud-config"), Data: map[string]string{"cloud-config.conf": "{}\n"}},
		&corev1.Secret{ObjectMeta: meta("key"), Data: map[string][]byte{"id": []byte("LTAI")}})
	client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "token"}}, nil
	})
	runner, err := podprocess.New(podprocess.Options{
		BinDir: bin, Client: client, Config: &rest.Config{Host: "https://127.0.0.1:1"}, CloudURL: "http://cloud", Dir: dir,
		Metadata: func(id string) string { return "http://metadata/" + id },
	})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: meta("ccm"), Spec: corev1.PodSpec{
		ServiceAccountName: "ccm",
		Volumes: []corev1.Volume{{Name: "cloud-config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "cloud-config"},
		}}}},
		Containers: []corev1.Container{{
			Command: []string{"/cloud-controller-manager"}, Args: []string{"--cloud-config=/etc/config/cloud-config.conf", "--dir=/etc/config"},
			VolumeMounts:             []corev1.VolumeMount{{Name: "cloud-config", MountPath: "/etc/config"}},
			Resources:                corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ki")}},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Env: []corev1.EnvVar{
				{Name: "CONFIG", Value: "/etc/config/cloud-config.conf"},
				{Name: "CONTAINER_MEMORY_LIMIT", ValueFrom: &corev1.EnvVarSource{
					ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"},
				}},
				{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "key"}, Key: "id",
				}}},
			},
		}},
	}}
	if !runner.Runs(pod) {
		t.Fatal("the pod of a manager is not run")
	}
	exit, err := runner.Run(t.Context(), pod, "i-1")
	if err != nil || exit.Code != 3 {
		t.Fatalf("exit code %d, %v, want 3", exit.Code, err)
	}
	variable := regexp.MustCompile(regexp.QuoteMeta(dir) + `/container-\d+|\d{4,5}\n`)
	got := strings.Split(strings.TrimSpace(variable.ReplaceAllString(strings.ReplaceAll(exit.Message, "1024 ", "1Ki "), "X\n")), "\n")
	want := []string{
		"--cloud-config=X", "/cloud-config/cloud-config.conf", "--dir=X", "/cloud-config", "--kubeconfig=X", "/kubeconfig",
		"--authentication-kubeconfig=X", "/kubeconfig", "--authorization-kubeconfig=X", "/kubeconfig", "--bind-address=127.0.0.1",
		"--secure-port=X",
		"{}", "1Ki LTAI http://cloud",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the program sees (-want +got):\n%s", diff)
	}

	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "WAIT", Value: "yes"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := runner.Run(ctx, pod, "i-1"); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "pods", "kube-system_ccm.log"))
	if err != nil || !strings.HasPrefix(string(log), exit.Message) || !strings.HasSuffix(string(log), "stopped\n") {
		t.Errorf("the log is %q, %v", log, err)
	}
}
