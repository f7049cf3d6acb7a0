//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// broadcastJobCRD is as much of OpenKruise as a client sees. Its manager is played by initorWorld.
const broadcastJobCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: broadcastjobs.apps.kruise.io
spec:
  group: apps.kruise.io
  names: {kind: BroadcastJob, listKind: BroadcastJobList, plural: broadcastjobs, singular: broadcastjob}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

var broadcastJobs = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "broadcastjobs"}

// TestInitor runs the workstation's commands against a real API server. The pods are run by the test: as the container of a
// pod says, with a token of its ServiceAccount, so that the role that run makes is the one that is used.
func TestInitor(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sandbox")
	p := start(t, t.TempDir(), "up", "--nodes", "0", "--dir", dir)
	p.untilReady()
	w := newInitorWorld(t, dir)
	w.addNode("empty", "", func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	})
	w.addNode("done", "cn-hangzhou.i-done", nil)
	w.addNode("other", "cn-hangzhou.i-another", nil)
	w.addNode("virtual", "", func(n *corev1.Node) { n.Labels = map[string]string{"type": "virtual-kubelet"} })
	playing, stop := context.WithCancel(t.Context())
	var players sync.WaitGroup
	players.Go(func() { w.play(playing) })
	defer players.Wait()
	defer stop() // also when the test ends half way

	w.beforeOpenKruise()
	w.runsJobs()
	w.installOpenKruise(p)
	w.runsABroadcastJob()
	w.keepsABroadcastJob(p)

	stop()
	players.Wait()
	p.stop()
}

func (w *initorWorld) beforeOpenKruise() {
	if code, _, stderr := w.initor("run"); code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--driver job") {
		w.Errorf("run without OpenKruise: exit code %d with %q, want 1 and one line that offers --driver job", code, stderr)
	}
	code, stdout, _ := w.initor("check")
	if code != 4 || !strings.Contains(stdout, "empty  -                      missing") || strings.Contains(stdout, "virtual") {
		w.Errorf("check: exit code %d with\n%s\nwant 4, and the node without ID missing", code, stdout)
	}
}

func (w *initorWorld) runsJobs() {
	code, stdout, stderr := w.initor("run", "--driver", "job", "--timeout", "40s", "--output", "json")
	w.wantNodes("run --driver job", stdout, map[string]string{
		"done": "unchanged cn-hangzhou.i-done", "empty": "set cn-hangzhou.i-empty", "other": "failed cn-hangzhou.i-another",
	})
	if code != 4 || !strings.Contains(stderr, "1 of 3 failed") {
		w.Errorf("run --driver job: exit code %d, want 4 for the failed node; standard error:\n%s", code, stderr)
	}
	w.wantNothingLeft()
}

func (w *initorWorld) runsABroadcastJob() {
	if err := w.client.CoreV1().Nodes().Delete(w.Context(), "other", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.addNode("second", "", nil)
	code, stdout, stderr := w.initor("run", "--timeout", "40s", "--output", "json")
	w.wantNodes("run", stdout, map[string]string{
		"done": "unchanged cn-hangzhou.i-done", "empty": "unchanged cn-hangzhou.i-empty", "second": "set cn-hangzhou.i-second",
	})
	if code != 0 {
		w.Errorf("run: exit code %d, want 0; standard error:\n%s", code, stderr)
	}
	w.wantNothingLeft()
	if exit, out, _ := w.initor("check"); exit != 0 {
		w.Errorf("check: exit code %d, want 0, with\n%s", exit, out)
	}
}

func (w *initorWorld) keepsABroadcastJob(p *program) {
	if code, stdout, stderr := w.initor("run", "--keep", "--timeout", "40s"); code != 0 {
		w.Fatalf("run --keep: exit code %d with\n%s\n%s", code, stdout, stderr)
	}
	w.addNode("late", "", nil)
	p.until("status shows the node that joined later", eventDeadline, func(context.Context) bool {
		code, stdout, _ := w.initor("status")
		return code == 0 && strings.Contains(stdout, "late    cn-hangzhou.i-late    set")
	})
	_, manifest, _ := w.initor("manifest", "--keep")
	out, err := w.kubectl("apply", "--server-side", "--dry-run=server", "--field-manager=somebody", "-f", w.file("initor.yaml", manifest))
	if err != nil || !strings.Contains(out, "broadcastjob.apps.kruise.io/provider-initor-run") {
		w.Errorf("the manifest is not what run applied, so that another manager conflicts or is refused: %v\n%s", err, out)
	}
}

// initorWorld is the cluster with its machines.
type initorWorld struct {
	*testing.T
	dir      string // for its files
	admin    string // the administrator's kubeconfig
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	metadata *httptest.Server
}

func newInitorWorld(t *testing.T, dir string) *initorWorld {
	t.Helper()
	w := &initorWorld{T: t, dir: t.TempDir(), admin: filepath.Join(dir, "kubeconfig"), client: clientOf(t, dir)}
	config, err := clientcmd.BuildConfigFromFlags("", w.admin)
	if err != nil {
		t.Fatal(err)
	}
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	w.metadata = httptest.NewServer(http.HandlerFunc(serveMetadata))
	t.Cleanup(w.metadata.Close)
	return w
}

// serveMetadata is the metadata service of every machine: that of node a is below /a and says that it is instance i-a.
func serveMetadata(rw http.ResponseWriter, r *http.Request) {
	name, item, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/latest/meta-data/")
	switch item {
	case "instance-id":
		_, _ = fmt.Fprint(rw, "i-"+name)
	case "region-id":
		_, _ = fmt.Fprint(rw, "cn-hangzhou")
	default:
		rw.WriteHeader(http.StatusNotFound) // no tokens
	}
}

func (w *initorWorld) addNode(name, providerID string, edit func(*corev1.Node)) {
	w.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	if edit != nil {
		edit(n)
	}
	if _, err := w.client.CoreV1().Nodes().Create(w.Context(), n, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *initorWorld) installOpenKruise(p *program) {
	if out, err := w.kubectl("apply", "-f", w.file("crd.yaml", broadcastJobCRD)); err != nil {
		w.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	p.until("BroadcastJobs are served", eventDeadline, func(ctx context.Context) bool {
		_, err := w.dynamic.Resource(broadcastJobs).List(ctx, metav1.ListOptions{})
		return err == nil
	})
}

// initor runs provider-initor as an administrator does.
func (w *initorWorld) initor(args ...string) (code int, stdout, stderr string) {
	w.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(w.Context(), filepath.Join(binDir, "provider-initor"), append(args, "--kubeconfig="+w.admin)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (w *initorWorld) kubectl(args ...string) (string, error) {
	w.Helper()
	out, err := exec.CommandContext(w.Context(), filepath.Join(binDir, "sandbox"),
		append([]string{"kubectl"}, append(args, "--kubeconfig="+w.admin)...)...).CombinedOutput()
	return string(out), err
}

func (w *initorWorld) file(name, text string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// wantNodes compares the JSON of run with "result providerID" of each node.
func (w *initorWorld) wantNodes(what, stdout string, want map[string]string) {
	w.Helper()
	var document struct {
		Nodes []struct{ Node, ProviderID, Result, Reason string }
	}
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		w.Fatalf("%s: decode %q: %v", what, stdout, err)
	}
	got := map[string]string{}
	for _, n := range document.Nodes {
		got[n.Node] = n.Result + " " + n.ProviderID
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s (-want +got):\n%s\n%s", what, diff, stdout)
	}
}

func (w *initorWorld) wantNothingLeft() {
	w.Helper()
	for _, resource := range []string{
		"serviceaccounts", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io", "jobs.batch",
	} {
		out, err := w.kubectl("get", resource, "-A", "-o", "name", "-l", "app.kubernetes.io/managed-by=provider-initor")
		if err != nil || out != "" {
			w.Errorf("left of %s: %v\n%s", resource, err, out)
		}
	}
}

// play is the kubelets of all machines and, once its CRD is there, the OpenKruise manager, until ctx ends. What fails is tried
// again, as they do: objects come and go between a look and a write.
func (w *initorWorld) play(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := errors.Join(w.broadcast(ctx), w.runPods(ctx)); err != nil && ctx.Err() == nil {
			w.Logf("play the OpenKruise manager and the kubelets, will try again: %v", err)
		}
	}, 100*time.Millisecond)
}

func (w *initorWorld) runPods(ctx context.Context) error {
	pods, err := w.client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=provider-initor"})
	if err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		errs = append(errs, w.runPod(ctx, &pods.Items[i]))
	}
	return errors.Join(errs...)
}

// broadcast makes the pods that BroadcastJobs lack.
func (w *initorWorld) broadcast(ctx context.Context) error {
	jobs, err := w.dynamic.Resource(broadcastJobs).Namespace("kube-system").List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // OpenKruise is not installed
	}
	if err != nil {
		return err
	}
	nodes, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "type!=virtual-kubelet"})
	if err != nil {
		return err
	}
	for i := range jobs.Items {
		for _, n := range nodes.Items {
			pod, err := podOf(&jobs.Items[i], n.Name)
			if err != nil {
				return err
			}
			if _, err := w.client.CoreV1().Pods("kube-system").Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	return nil
}

// podOf returns the pod of a BroadcastJob for one node. Its name lets it be made once only.
func podOf(job *unstructured.Unstructured, nodeName string) (*corev1.Pod, error) {
	template, _, err := unstructured.NestedMap(job.Object, "spec", "template")
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod); err != nil {
		return nil, err
	}
	pod.Name = string(job.GetUID())[:8] + "-" + nodeName
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, job.GroupVersionKind())}
	pod.Spec.NodeName = nodeName
	return &pod, nil
}

// runPod does what the pod's kubelet does next.
func (w *initorWorld) runPod(ctx context.Context, pod *corev1.Pod) error {
	pods := w.client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		return pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
	case pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending:
		return nil
	}
	code, message, err := w.runContainer(ctx, pod)
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		pod.Status.Phase = corev1.PodRunning // it would be restarted
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: int32(code), Message: message, StartedAt: metav1.Now(), FinishedAt: metav1.Now(),
		}},
	}}
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// runContainer runs the container's program as its pod says, and returns its exit code and termination message.
func (w *initorWorld) runContainer(ctx context.Context, pod *corev1.Pod) (code int, message string, err error) {
	kubeconfig, err := w.podKubeconfig(ctx, pod)
	if err != nil {
		return 0, "", err
	}
	container := pod.Spec.Containers[0]
	report := filepath.Join(w.dir, pod.Name+".log")
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "provider-initor"))
	cmd.Args = container.Command // "init" is a name that the program goes by
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "METADATA_ENDPOINT=" + w.metadata.URL + "/" + pod.Spec.NodeName}
	for _, variable := range container.Env {
		switch {
		case variable.ValueFrom != nil && variable.ValueFrom.FieldRef.FieldPath == "spec.nodeName":
			variable.Value = pod.Spec.NodeName
		case variable.Value == container.TerminationMessagePath:
			variable.Value = report
		}
		cmd.Env = append(cmd.Env, variable.Name+"="+variable.Value)
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return 0, "", err
	}
	text, err := os.ReadFile(report)
	if errors.Is(err, os.ErrNotExist) {
		text, err = output.Bytes(), nil // FallbackToLogsOnError
	}
	return cmd.ProcessState.ExitCode(), string(text), err
}

// podKubeconfig writes a kubeconfig with a token of the pod's ServiceAccount.
func (w *initorWorld) podKubeconfig(ctx context.Context, pod *corev1.Pod) (string, error) {
	token, err := w.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(w.admin)
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(w.dir, pod.Name+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
