package chart

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	system    = metav1.NamespaceSystem
	doctorPod = "cloud-controller-manager-doctor"
)

// release is the release's and the chart's arguments in all install tests.
const release = "cloud-controller-manager charts/cloud-controller-manager --namespace kube-system"

// emulated are the values that let the manager reach the emulator.
func (s *sandbox) emulated() string {
	host := strings.TrimPrefix(s.url, "http://")
	return fmt.Sprintf(" --set endpoints.ecs=%[1]s,endpoints.slb=%[1]s,endpoints.vpc=%[1]s,endpoints.sts=%[1]s"+
		",extraEnv[0].name=ALICLOUD_CLIENT_SCHEME,extraEnv[0].value=HTTP --set clusterCIDR=%s", host, podCIDR)
}

// TestInstall installs, tests, upgrades and uninstalls the chart with either Helm.
func TestInstall(t *testing.T) {
	t.Parallel()
	for name, pkg := range helms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, pkg)
			key := []string{"ACCESS_KEY_ID=emulator", "ACCESS_KEY_SECRET=emulator-secret", "VPC_ID=vpc-emulator"}
			const version = "kubectl -n kube-system get configmap cloud-config -o jsonpath={.metadata.resourceVersion}"
			s.must("deploy/cloud-config.sh --region cn-hangzhou", key...)
			first := s.must(version)
			s.must("deploy/cloud-config.sh --region cn-hangzhou", key...)
			if again := s.must(version); again != first {
				t.Errorf("the same cloud-config again makes version %s of the ConfigMap, want still %s", again, first)
			}
			s.failsWithoutAllReplicas()
			s.daemonsWithoutNodes()
			notes := s.must("helm install " + release + s.emulated() + " --wait --timeout 2m")
			for _, want := range []string{"kubectl get nodes", "helm test", "cloud-config"} {
				if !strings.Contains(notes, want) {
					t.Errorf("the notes lack %q:\n%s", want, notes)
				}
			}
			c := s.container(system, s.deployment().Spec.Template.Spec)
			manager := c.start()
			s.serves()
			s.doctor()
			c.badKeyIsShown()
			s.metricsAreForReaders(manager)
			s.upgrades()
			s.upgradesWait(pkg == helm3)
			s.uninstalls()
		})
	}
}

// failsWithoutAllReplicas: one pod of two cannot start, for whatever reason. An installation that waits must not call that a success.
func (s *sandbox) failsWithoutAllReplicas() {
	s.Helper()
	nodes, err := s.client.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for _, node := range nodes.Items[1:] {
		s.must("kubectl cordon " + node.Name)
	}
	for _, replicas := range []string{"2", "1 --set nodeSelector.pool=missing"} {
		got := s.shell("helm install " + release + s.emulated() + " --wait --timeout 15s --set replicas=" + replicas)
		if got.code == 0 {
			s.Errorf("helm install --wait succeeds while a pod cannot start, replicas=%s:\n%s", replicas,
				s.must("kubectl -n kube-system get pods -o wide"))
		}
		s.must("helm uninstall cloud-controller-manager --namespace kube-system --wait --timeout 2m")
	}
	for _, node := range nodes.Items[1:] {
		s.must("kubectl uncordon " + node.Name)
	}
}

// daemonsWithoutNodes: no machine of the sandbox is a control-plane node. Nothing that waits for the DaemonSet fails, as
// docs/how-to/install.md says; the notes of the chart say what to look at, and its test fails.
func (s *sandbox) daemonsWithoutNodes() {
	s.Helper()
	notes := s.must("helm install " + release + s.emulated() + " --wait --timeout 30s --set kind=DaemonSet")
	if !strings.Contains(notes, "A DaemonSet that matches no node") {
		s.Errorf("the notes do not mention nodes that match:\n%s", notes)
	}
	s.must("kubectl --namespace kube-system rollout status daemonset/cloud-controller-manager --timeout 30s")
	if desired := s.must("kubectl --namespace kube-system get daemonset cloud-controller-manager -o jsonpath={.status.desiredNumberScheduled}"); desired != "0" {
		s.Errorf("%s pods are desired, want 0", desired)
	}
	if got := s.shell("helm test cloud-controller-manager --namespace kube-system --timeout 5s"); got.code == 0 {
		s.Errorf("helm test succeeds without a manager:\n%s", got.stdout)
	}
	s.must("helm uninstall cloud-controller-manager --namespace kube-system --wait --timeout 2m")
	s.must("kubectl --namespace kube-system delete pods --all --wait --timeout 2m") // of the test, which Helm keeps
}

// deployment is the manager's, with all of its pods ready and on nodes of their own.
func (s *sandbox) deployment() *appsv1.Deployment {
	s.Helper()
	d, err := s.client.AppsV1().Deployments(system).Get(s.Context(), "cloud-controller-manager", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.until("all pods are ready", func(ctx context.Context) string {
		if d, err = s.client.AppsV1().Deployments(system).Get(ctx, d.Name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas ||
			d.Status.UpdatedReplicas != *d.Spec.Replicas {
			return fmt.Sprintf("%+v", d.Status)
		}
		return ""
	})
	return d
}

// serves applies the example and waits for its address.
func (s *sandbox) serves() {
	s.Helper()
	s.must("kubectl apply -f deploy/example-service.yaml")
	s.until("the Service has an address and the nodes are initialized", func(ctx context.Context) string {
		service, err := s.client.CoreV1().Services("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil || len(service.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprint("no address: ", err)
		}
		nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for i := range nodes.Items {
			if nodes.Items[i].Labels[corev1.LabelTopologyZone] == "" || len(nodes.Items[i].Spec.Taints) > 0 {
				return fmt.Sprintf("node %s has the taints %v", nodes.Items[i].Name, nodes.Items[i].Spec.Taints)
			}
		}
		return ""
	})
}

// doctor runs the container of the release's test, which light nodes only pretend to.
//
// doctor lets Helm test the release, and plays the kubelet for the test's pod: light nodes run no containers.
func (s *sandbox) doctor() {
	s.Helper()
	pods := s.client.CoreV1().Pods(system)
	_ = pods.Delete(s.Context(), doctorPod, metav1.DeleteOptions{}) // of an earlier run
	test := make(chan result, 1)
	go func() {
		test <- s.shell("helm test cloud-controller-manager --namespace kube-system --timeout 2m")
	}()
	var pod *corev1.Pod
	s.until("the pod of the test runs", func(ctx context.Context) string {
		var err error
		if pod, err = pods.Get(ctx, doctorPod, metav1.GetOptions{}); err != nil || pod.Status.Phase != corev1.PodRunning {
			return fmt.Sprint("not yet: ", err)
		}
		return ""
	})
	c := s.container(system, pod.Spec)
	got := run(s.Context(), s.T, c.env(), program(s.T, "cloud-controller-manager"), c.args()...)
	phase := corev1.PodSucceeded
	if got.code != 0 {
		phase = corev1.PodFailed
		s.Errorf("doctor: exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	patch := fmt.Sprintf(`{"status":{"phase":%q}}`, phase)
	if _, err := pods.Patch(s.Context(), doctorPod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		s.Fatal(err)
	}
	if hook := <-test; (hook.code == 0) != (got.code == 0) {
		s.Errorf("helm test: exit code %d, %s%s, and the doctor's is %d", hook.code, hook.stdout, hook.stderr, got.code)
	}
}

// badKeyIsShown breaks the key in the file that the kubelet would bring, and looks where users look. The manager reads it anew for a
// call, here those of another Service, and serves on with the key that it has.
func (c *container) badKeyIsShown() {
	c.Helper()
	path := c.inside("/etc/kubernetes/config/cloud-config.conf")
	good, err := os.ReadFile(path)
	if err != nil {
		c.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			c.Fatal(err)
		}
	}
	write(strings.Replace(string(good), base64.StdEncoding.EncodeToString([]byte("emulator-secret")), "no secret", 1))
	c.must("kubectl create service loadbalancer other --tcp=81")
	c.until("kubectl describe shows the event", func(context.Context) string {
		shown := c.must("kubectl -n kube-system describe configmap cloud-config")
		if !strings.Contains(shown, "InvalidCredentials") || !strings.Contains(shown, "Global.accessKeySecret") {
			return shown
		}
		return ""
	})
	c.must("kubectl wait service/other --for=jsonpath='{.status.loadBalancer.ingress}' --timeout 2m")
	write(string(good))
	c.must("kubectl delete service other --wait")
}

// metricsAreForReaders asks for metrics as Prometheus does: with a token that may read them, one that may not, and none.
func (s *sandbox) metricsAreForReaders(manager *process) {
	s.Helper()
	s.must("kubectl create namespace monitoring && kubectl -n monitoring create serviceaccount prometheus && kubectl -n monitoring create serviceaccount other")
	s.must("helm upgrade " + release +
		" --reuse-values --wait --set metrics.readers[0].name=prometheus,metrics.readers[0].namespace=monitoring")
	port := ""
	for _, arg := range manager.command.Args {
		if after, found := strings.CutPrefix(arg, "--secure-port="); found {
			port = after
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as the ServiceMonitor says
	for token, want := range map[string]int{
		s.token("monitoring", "prometheus"): http.StatusOK, s.token("monitoring", "other"): http.StatusForbidden, "": http.StatusForbidden,
	} {
		request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/metrics", nil)
		if err != nil {
			s.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			s.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close() // it is read
		if err != nil || response.StatusCode != want {
			s.Errorf("metrics: %s, want %d: %v", response.Status, want, err)
		}
		if want != http.StatusOK {
			continue
		}
		for _, series := range seriesOfOthers {
			if !strings.Contains(string(text), "\n"+series) {
				s.Errorf("metrics: there is no %s", series)
			}
		}
	}
}

// seriesOfOthers are series that alerts and dashboard of the chart use, and libraries export: nothing else notices when they get other
// names or labels. The program leads.
var seriesOfOthers = []string{
	`leader_election_master_status{name="cloud-controller-manager"} 1`, `workqueue_depth{name="`, "process_resident_memory_bytes ",
	"process_cpu_seconds_total ",
}

// upgrades changes values; the other kind of workload takes the place of the first.
func (s *sandbox) upgrades() {
	s.Helper()
	// One after the other needs no further machine; with one replica there is no other.
	s.must("helm upgrade " + release + " --reuse-values --wait --timeout 2m --set replicas=1")
	if got := s.deployment().Spec.Strategy; got.Type != appsv1.RecreateDeploymentStrategyType || got.RollingUpdate != nil {
		s.Errorf("the strategy of one replica is %+v", got)
	}
	s.must("helm upgrade " + release + " --reuse-values --wait --timeout 2m --set replicas=3 --set extraArgs={--v=2}")
	if got := s.deployment().Spec.Strategy; got.RollingUpdate == nil || got.RollingUpdate.MaxSurge.IntValue() != 0 ||
		got.RollingUpdate.MaxUnavailable.IntValue() != 1 {
		s.Errorf("after the upgrade, the strategy is %+v", got)
	}
	if d := s.deployment(); *d.Spec.Replicas != 3 || !strings.Contains(strings.Join(d.Spec.Template.Spec.Containers[0].Args, " "), "--v=2") {
		s.Errorf("after the upgrade there are %d replicas with %q", *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Args)
	}
	got := s.shell("helm upgrade " + release + " --reuse-values --set replicas=none")
	if got.code == 0 || !strings.Contains(got.stderr, "replicas") {
		s.Errorf("an upgrade to no replicas: exit code %d, %s", got.code, got.stderr)
	}
	s.must("helm upgrade " + release + " --reuse-values --wait --timeout 2m --set kind=DaemonSet,controlPlaneNodes=ignore")
	set, err := s.client.AppsV1().DaemonSets(system).Get(s.Context(), "cloud-controller-manager", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.until("the DaemonSet has a pod on each node", func(ctx context.Context) string {
		if set, err = s.client.AppsV1().DaemonSets(system).Get(ctx, set.Name, metav1.GetOptions{}); err != nil || set.Status.NumberReady != 3 {
			return fmt.Sprintf("%v %+v", err, set.Status)
		}
		return ""
	})
	s.must("helm rollback cloud-controller-manager 1 --namespace kube-system --wait --timeout 2m")
	s.deployment()
}

// upgradesWait: an upgrade whose pods cannot start is no success, of either kind of workload. Helm 3 accepts as many missing pods as the
// rolling update permits, which is one; "kubectl rollout status" accepts none, as docs/how-to/install.md says.
func (s *sandbox) upgradesWait(lenient bool) {
	s.Helper()
	const (
		upgrade = "helm upgrade " + release + " --reuse-values --history-max 20 --wait --timeout 15s --set " // the first release stays
		daemons = "kind=DaemonSet,controlPlaneNodes=ignore"
		dead    = "kubectl create -f - <<<'{apiVersion: v1, kind: Node, metadata: {name: %s}}'" // no kubelet starts pods there
	)
	missing := func(values string, accepted bool) {
		s.Helper()
		if got := s.shell(upgrade + values); (got.code == 0) != accepted {
			s.Errorf("helm upgrade --wait --set %s: exit code %d, want success: %t\n%s%s", values, got.code, accepted, got.stderr,
				s.must("kubectl -n kube-system get pods -o wide"))
		}
		kind := "deployment"
		if values == daemons {
			kind = "daemonset"
		}
		if got := s.shell("kubectl --namespace kube-system rollout status " + kind + "/cloud-controller-manager --timeout 5s"); got.code == 0 {
			s.Errorf("kubectl rollout status succeeds with --set %s: %s", values, got.stdout)
		}
	}
	missing("nodeSelector.pool=missing", false)
	s.must("helm rollback cloud-controller-manager 1 --namespace kube-system --wait --timeout 2m")
	missing("replicas=4", lenient) // of three machines
	s.must(fmt.Sprintf(dead, "dead-1"))
	missing(daemons, lenient)
	s.must(fmt.Sprintf(dead, "dead-2"))
	missing(daemons, false)
	s.must("kubectl delete nodes dead-1 dead-2")
	s.must("helm rollback cloud-controller-manager 1 --namespace kube-system --wait --timeout 2m")
	s.deployment()
}

// uninstalls removes the release, and looks at what stays.
func (s *sandbox) uninstalls() {
	s.Helper()
	manifest := s.dir + "-manifest.yaml"
	if err := os.WriteFile(manifest, []byte(s.must("helm get manifest cloud-controller-manager --namespace kube-system")), 0o600); err != nil {
		s.Fatal(err)
	}
	s.must("kubectl get -f " + manifest)
	before := s.loadBalancers()
	s.must("helm uninstall cloud-controller-manager --namespace kube-system --wait --timeout 2m")
	if left := s.must("kubectl get --ignore-not-found -f " + manifest); left != "" {
		s.Errorf("uninstalling leaves\n%s", left)
	}
	s.must("kubectl -n kube-system get configmap cloud-config")
	if after := s.loadBalancers(); len(before) != 1 || fmt.Sprint(before) != fmt.Sprint(after) {
		s.Errorf("uninstalling changes the load balancers from %v to %v, want the one of the Service kept", before, after)
	}
}
