package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	kruise "github.com/openkruise/kruise-api/apps/v1alpha1"
	kruisefake "github.com/openkruise/kruise-api/client/clientset/versioned/fake"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// cluster is an API server with controllers: a pod appears for each Job, and on each node for a BroadcastJob, at the moment
// in which it is applied. The fake clientsets have neither controllers nor UIDs, and cannot delete collections.
type cluster struct {
	kube   *fake.Clientset
	kruise *kruisefake.Clientset
	nodes  []string
	end    func(pod *corev1.Pod) // what becomes of a new pod
	noPods bool                  // as without a controller

	mu  sync.Mutex // guards log
	log []string   // "verb resource name" of each write, in order
}

func newCluster(end func(*corev1.Pod), nodes ...*corev1.Node) *cluster {
	c := &cluster{end: end, kruise: kruisefake.NewSimpleClientset()}
	var objects []runtime.Object
	for _, n := range nodes {
		objects = append(objects, n)
		if n.Labels["type"] != "virtual-kubelet" {
			c.nodes = append(c.nodes, n.Name)
		}
	}
	c.kube = fake.NewClientset(objects...)
	c.kube.PrependReactor("patch", "jobs", c.applyJob)
	c.kruise.PrependReactor("patch", "broadcastjobs", c.applyBroadcastJob)
	c.kube.PrependReactor("delete-collection", "jobs", c.deleteJobs)
	c.kruise.PrependReactor("delete-collection", "broadcastjobs", c.deleteBroadcastJobs)
	c.kube.PrependReactor("delete", "pods", c.replacePod)
	for _, clients := range []*clienttesting.Fake{&c.kube.Fake, &c.kruise.Fake} {
		clients.PrependReactor("*", "*", c.note)
	}
	return c
}

func (c *cluster) installOpenKruise() {
	c.kube.Resources = append(c.kube.Resources, &metav1.APIResourceList{
		GroupVersion: kruise.SchemeGroupVersion.String(),
		APIResources: []metav1.APIResource{{Name: "broadcastjobs", Kind: "BroadcastJob", Namespaced: true}},
	})
}

// note keeps a log of the writes.
func (c *cluster) note(action clienttesting.Action) (bool, runtime.Object, error) {
	if slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
		return false, nil, nil
	}
	name := ""
	if named, ok := action.(interface{ GetName() string }); ok {
		name = named.GetName()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%s %s %s", action.GetVerb(), action.GetResource().Resource, name))
	return false, nil, nil
}

func (c *cluster) writes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

func (c *cluster) applyJob(action clienttesting.Action) (bool, runtime.Object, error) {
	var job batchv1.Job
	if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &job); err != nil {
		return true, nil, err
	}
	job.UID = types.UID("uid-of-" + job.Name)
	err := c.kube.Tracker().Create(batchv1.SchemeGroupVersion.WithResource("jobs"), &job, job.Namespace)
	owner := metav1.NewControllerRef(&job, batchv1.SchemeGroupVersion.WithKind("Job"))
	return true, &job, errors.Join(err, c.run(job.Spec.Template, job.Spec.Template.Spec.NodeName, job.Namespace, owner))
}

func (c *cluster) applyBroadcastJob(action clienttesting.Action) (bool, runtime.Object, error) {
	var job kruise.BroadcastJob
	err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &job)
	job.UID = "uid-of-broadcastjob"
	err = errors.Join(err, c.kruise.Tracker().Create(kruise.SchemeGroupVersion.WithResource("broadcastjobs"), &job, job.Namespace))
	owner := metav1.NewControllerRef(&job, kruise.SchemeGroupVersion.WithKind("BroadcastJob"))
	for _, name := range c.nodes {
		err = errors.Join(err, c.run(job.Spec.Template, name, job.Namespace, owner))
	}
	return true, &job, err
}

// run makes the pod for a node and lets it end.
func (c *cluster) run(template corev1.PodTemplateSpec, nodeName, namespace string, owner *metav1.OwnerReference) error {
	if c.noPods {
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace, pod.OwnerReferences = owner.Name+"-"+nodeName, namespace, []metav1.OwnerReference{*owner}
	pod.UID = types.UID(pod.Name)
	pod.Spec.NodeName = nodeName
	c.end(pod)
	return c.kube.Tracker().Create(corev1.SchemeGroupVersion.WithResource("pods"), pod, namespace)
}

// replacePod does what the owner does when a pod of its is deleted.
func (c *cluster) replacePod(action clienttesting.Action) (bool, runtime.Object, error) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	name := action.(clienttesting.DeleteAction).GetName()
	object, err := c.kube.Tracker().Get(pods, action.GetNamespace(), name)
	if err != nil {
		return true, nil, err
	}
	if err := c.kube.Tracker().Delete(pods, action.GetNamespace(), name); err != nil {
		return true, nil, err
	}
	next := object.(*corev1.Pod).DeepCopy()
	next.Name, next.UID, next.Status = name+"x", types.UID(name+"x"), corev1.PodStatus{}
	c.end(next)
	return true, nil, c.kube.Tracker().Create(pods, next, next.Namespace)
}

func (c *cluster) deleteJobs(action clienttesting.Action) (bool, runtime.Object, error) {
	resource := batchv1.SchemeGroupVersion.WithResource("jobs")
	list, err := c.kube.Tracker().List(resource, batchv1.SchemeGroupVersion.WithKind("Job"), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	for _, job := range list.(*batchv1.JobList).Items {
		err = errors.Join(err, c.kube.Tracker().Delete(resource, job.Namespace, job.Name))
	}
	return true, nil, err
}

func (c *cluster) deleteBroadcastJobs(action clienttesting.Action) (bool, runtime.Object, error) {
	resource := kruise.SchemeGroupVersion.WithResource("broadcastjobs")
	list, err := c.kruise.Tracker().List(resource, kruise.SchemeGroupVersion.WithKind("BroadcastJob"), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	for _, job := range list.(*kruise.BroadcastJobList).Items {
		err = errors.Join(err, c.kruise.Tracker().Delete(resource, job.Namespace, job.Name))
	}
	return true, nil, err
}

// left lists what a rollout leaves in the cluster.
func (c *cluster) left(t *testing.T) []string {
	t.Helper()
	ctx, all := t.Context(), metav1.ListOptions{}
	accounts, err1 := c.kube.CoreV1().ServiceAccounts("").List(ctx, all)
	roles, err2 := c.kube.RbacV1().ClusterRoles().List(ctx, all)
	bindings, err3 := c.kube.RbacV1().ClusterRoleBindings().List(ctx, all)
	jobs, err4 := c.kube.BatchV1().Jobs("").List(ctx, all)
	broadcasts, err5 := c.kruise.AppsV1alpha1().BroadcastJobs("").List(ctx, all)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	var left []string
	for kind, count := range map[string]int{
		"account": len(accounts.Items), "role": len(roles.Items), "binding": len(bindings.Items),
		"job": len(jobs.Items), "broadcastjob": len(broadcasts.Items),
	} {
		if count > 0 {
			left = append(left, kind)
		}
	}
	slices.Sort(left)
	return left
}
