package chart

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// commands are the blocks of a page that begin with "```sh run".
var commands = regexp.MustCompile("(?ms)^```sh run\n(.*?)^```$")

// before is what a page takes for granted.
var before = map[string]func(s *sandbox, k *kubelet){
	"README.md":                        func(*sandbox, *kubelet) {},
	"docs/how-to/install.md":           func(*sandbox, *kubelet) {},
	"docs/how-to/cloud-config.md":      func(*sandbox, *kubelet) {},
	"docs/how-to/provider-ids.md":      func(*sandbox, *kubelet) {},
	"docs/how-to/migrate.md":           officialManager,
	"docs/how-to/upgrade-uninstall.md": installed,
	"docs/how-to/multi-tenancy.md":     installed,
	"docs/how-to/troubleshooting.md":   installed,
	"docs/how-to/pause.md":             installed,
}

// TestDocs runs the commands of each page in order, in a cluster of its own, as a reader does.
func TestDocs(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(root + "/docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, root+"/README.md")
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks := commands.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			continue
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+"/"))
		if strings.HasPrefix(name, "docs/tutorials/") {
			continue // TestTutorials
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prepare, ok := before[name]
			if !ok {
				t.Fatalf("%s has commands, and nothing says what they take for granted", name)
			}
			s := newSandbox(t, helm4)
			k := &kubelet{sandbox: s}
			prepare(s, k)
			k.sync()
			for _, block := range blocks {
				s.command(block[1])
				k.sync()
			}
			if name == migration {
				s.isBack()
			}
		})
	}
}

// migration is a page that ends where the old manager is there again.
const migration = "docs/how-to/migrate.md"

// TestMigrationThatBreaksOff: the way back also leads back from between two steps, when everything of the official CCM is deleted, and
// nothing is installed in its place.
func TestMigrationThatBreaksOff(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, migration))
	if err != nil {
		t.Fatal(err)
	}
	there, rest, ok := strings.Cut(string(text), "**5. Install")
	_, back, backToo := strings.Cut(rest, "\n## Migrate back\n")
	if !ok || !backToo {
		t.Fatal("the page has no step 5, or no way back")
	}
	s := newSandbox(t, helm4)
	officialManager(s, nil)
	for _, block := range commands.FindAllStringSubmatch(there+back, -1) {
		s.command(block[1])
	}
	s.isBack()
}

// isBack checks that the official CCM is there as before, and lets it do its work.
func (s *sandbox) isBack() {
	s.Helper()
	if diff := cmp.Diff(s.vendor, s.vendorObjects()); diff != "" {
		s.Errorf("the way back changes the objects of the official CCM (-before +after):\n%s", diff)
	}
	s.official().stop(s.T)
}

// command runs a block with the environment of a reader whose cloud is the emulator.
func (s *sandbox) command(block string) {
	s.Helper()
	s.must(block, "ACCESS_KEY_ID=emulator", "ACCESS_KEY_SECRET=emulator-secret", "VPC_ID=vpc-emulator", "VSWITCH_ID=vsw-a",
		"ALICLOUD_CLIENT_SCHEME=HTTP", "SLB_ENDPOINT="+s.host(), "NLB_ENDPOINT="+s.host(), "VPC_ENDPOINT="+s.host(), "ECS_ENDPOINT="+s.host())
}

func (s *sandbox) host() string { return strings.TrimPrefix(s.url, "http://") }

// kubelet runs the manager while there is a pod of it, as the cluster's kubelets would: light nodes run no containers.
type kubelet struct {
	*sandbox
	generation int64
	running    *process
}

// sync starts, restarts and stops the manager as its Deployment says.
func (k *kubelet) sync() {
	k.Helper()
	d, err := k.client.AppsV1().Deployments(system).Get(k.Context(), "cloud-controller-manager", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		k.stop()
	case err != nil:
		k.Fatal(err)
	case k.running == nil || d.Generation != k.generation:
		k.stop()
		k.generation = d.Generation
		spec := *d.Spec.Template.Spec.DeepCopy()
		for name, value := range map[string]string{
			"ALICLOUD_CLIENT_SCHEME": "HTTP", "SLB_ENDPOINT": k.host(), "NLB_ENDPOINT": k.host(), "VPC_ENDPOINT": k.host(), "ECS_ENDPOINT": k.host(),
			"METADATA_ENDPOINT": k.url + "/metadata/" + k.instance(),
		} {
			spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
		}
		k.running = k.container(system, spec).start()
	}
}

func (k *kubelet) stop() {
	if k.running != nil {
		k.running.stop(k.T)
		k.running = nil
	}
}

// instance is the id of an ECS instance of the cluster, whose metadata service the manager asks.
func (s *sandbox) instance() string {
	s.Helper()
	id := ""
	s.until("an instance", func(context.Context) string {
		var state struct{ Instances []struct{ InstanceId string } } //nolint:revive,staticcheck // the API's spelling
		s.state(&state)
		if len(state.Instances) == 0 {
			return "there is none"
		}
		id = state.Instances[0].InstanceId
		return ""
	})
	return id
}

// installed is a cluster with the manager, the example's Service, and one that is kept.
func installed(s *sandbox, k *kubelet) {
	s.command("deploy/cloud-config.sh --region cn-hangzhou")
	s.command("helm install " + release + " --set clusterCIDR=" + podCIDR + " --wait && helm upgrade " + release + " --reuse-values --wait")
	s.command("kubectl apply -f deploy/example-service.yaml && kubectl create service loadbalancer kept --tcp=80")
	k.sync()
	s.waitForAddress("web")
	s.waitForAddress("kept")
}

// officialManager is a cluster as the vendor's guide leaves it, with a Service that has its load balancer. Whatever the page does with it,
// the cloud sees no write, and the Service ends as the official CCM has left it: so that has nothing to do when it comes back.
func officialManager(s *sandbox, _ *kubelet) {
	s.command("deploy/cloud-config.sh --region cn-hangzhou")
	s.command("kubectl apply -f deploy/example-service.yaml")
	s.official().stop(s.T)
	// What only the official CCM writes: by this label it sees that a Service has not changed.
	s.must(`kubectl patch service web --subresource status --patch '{"metadata":{"labels":{"service.beta.kubernetes.io/hash":"96f1f447bd09ba7db652c888f47f01e67d52c4e6279a9ce3431a9168"}}}'`)
	s.vendor = s.vendorObjects()
	cloud, service := s.cloudOf(), s.serviceOf("web")
	s.ask(http.MethodDelete, "calls", nil)
	s.Cleanup(func() {
		if diff := cmp.Diff(cloud, s.cloudOf()); diff != "" {
			s.Errorf("changing over and back changes the cloud (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(service, s.serviceOf("web")); diff != "" {
			s.Errorf("changing over and back changes the Service (-before +after):\n%s", diff)
		}
		var seen struct {
			Calls []struct{ Action, Kind string }
		}
		s.ask(http.MethodGet, "calls", &seen)
		for _, call := range seen.Calls {
			if call.Kind == "write" {
				s.Errorf("changing over and back writes: %s", call.Action)
			}
		}
		if len(seen.Calls) == 0 {
			s.Error("nobody has called the cloud")
		}
	})
}

// vendorObjects is what counts of the objects of the official CCM.
func (s *sandbox) vendorObjects() string {
	s.Helper()
	return s.must("kubectl --namespace kube-system get -o go-template='{{range .items}}{{.kind}} {{.metadata.name}} {{.rules}} {{.roleRef}} {{.subjects}} {{with .spec}}{{.template.spec}}{{end}}{{\"\\n\"}}{{end}}'" +
		" daemonset/cloud-controller-manager serviceaccount/cloud-controller-manager clusterrole/system:cloud-controller-manager" +
		" clusterrolebinding/system:cloud-controller-manager clusterrolebinding/system:shared-informers clusterrolebinding/system:cloud-node-controller" +
		" clusterrolebinding/system:pvl-controller clusterrolebinding/system:route-controller")
}

// cloudOf is what managers make in the cloud: load balancers with all that belongs to them, and route tables.
func (s *sandbox) cloudOf() map[string]any {
	s.Helper()
	var all map[string]any
	s.ask(http.MethodGet, "state", &all)
	return map[string]any{"loadBalancers": all["loadBalancers"], "routeTables": all["routeTables"]}
}

// serviceOf is what managers write into a Service. Conditions are only this project's.
func (s *sandbox) serviceOf(name string) corev1.Service {
	s.Helper()
	service, err := s.client.CoreV1().Services("default").Get(context.WithoutCancel(s.Context()), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Annotations: service.Annotations, Labels: service.Labels, Finalizers: service.Finalizers},
		Status:     corev1.ServiceStatus{LoadBalancer: service.Status.LoadBalancer},
	}
}

// official installs the official CCM and lets it do its work. This project's manager stands for it, with the guide's role and flags:
// that it takes over what the official one made is tested by pkg/slb, against copies of that.
func (s *sandbox) official() *process {
	s.must("kubectl apply -f hack/chart/testdata/official-ccm.yaml")
	set, err := s.client.AppsV1().DaemonSets(system).Get(s.Context(), "cloud-controller-manager", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	spec := set.Spec.Template.Spec
	for name, value := range map[string]string{"ALICLOUD_CLIENT_SCHEME": "HTTP", "SLB_ENDPOINT": s.host(), "NLB_ENDPOINT": s.host(),
		"VPC_ENDPOINT": s.host(), "ECS_ENDPOINT": s.host()} {
		spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
	}
	running := s.container(system, spec).start()
	s.waitForAddress("web")
	s.must("kubectl wait nodes --all --for=condition=NetworkUnavailable=false --timeout 2m") // their routes are there
	return running
}

func (s *sandbox) waitForAddress(name string) {
	s.Helper()
	s.must("kubectl wait service/" + name + " --for=jsonpath='{.status.loadBalancer.ingress}' --timeout 2m")
}
