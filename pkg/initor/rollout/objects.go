package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	kruise "github.com/openkruise/kruise-api/apps/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// The labels by which the objects of a rollout are found and distinguished from those of others.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	programName    = "provider-initor"
)

const (
	// restartLimit is how often a container starts again before its node counts as failed. Each start retries for a minute
	// by itself, so a fault that outlives four is not a passing one.
	restartLimit = 3
	// jobBackoffLimit must never be reached: a Job that gives up deletes its pod, and with it the reason.
	jobBackoffLimit = 1000
	// orphanGrace is what pods may take beyond the rollout's timeout if nobody removes them, so that they are not taken away
	// while the rollout still reads them.
	orphanGrace = time.Minute
	// suffixLength is enough for the suffixes of 10,000 node names to differ, but for a chance of one in 20,000.
	suffixLength = 10
)

// Objects returns everything that c describes, in the order in which it has to be made.
func Objects(c Config) []runtime.Object {
	objects := identityObjects(c)
	if c.Driver == DriverBroadcastJob {
		return append(objects, broadcastJob(c))
	}
	for _, name := range c.Nodes {
		objects = append(objects, job(c, name))
	}
	return objects
}

// identityObjects are the pods' ServiceAccount and its role: to get and patch nodes, and nothing more. The policy that restricts the role
// comes before it.
func identityObjects(c Config) []runtime.Object {
	cluster := metav1.ObjectMeta{Name: c.Name, Labels: labelsOf(c)}
	var objects []runtime.Object
	if c.AdmissionPolicy {
		objects = policyObjects(c)
	}
	return append(objects,
		&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace, Labels: labelsOf(c)},
		},
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: cluster,
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}},
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: cluster,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: c.Name, Namespace: c.Namespace}},
		},
	)
}

func broadcastJob(c Config) *kruise.BroadcastJob {
	template := podTemplate(c, "")
	if !c.Keep {
		template.Spec.ActiveDeadlineSeconds = new(deadlineSeconds(c))
	}
	return &kruise.BroadcastJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kruise.SchemeGroupVersion.String(), Kind: kindBroadcastJob},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace, Labels: labelsOf(c)},
		Spec: kruise.BroadcastJobSpec{
			Template: template,
			// One that completes makes no pod any more, neither for a node that joins later nor in the place of one that was evicted.
			CompletionPolicy: kruise.CompletionPolicy{Type: kruise.Never},
			// FailFast would take the pods off all other nodes as soon as one node fails, and would never serve nodes that join later.
			FailurePolicy: kruise.FailurePolicy{Type: kruise.FailurePolicyTypeContinue, RestartLimit: restartLimit},
		},
	}
}

func job(c Config, nodeName string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: kindJob},
		ObjectMeta: metav1.ObjectMeta{Name: jobName(c, nodeName), Namespace: c.Namespace, Labels: labelsOf(c)},
		Spec: batchv1.JobSpec{
			Template:              podTemplate(c, nodeName),
			BackoffLimit:          ptr.To[int32](jobBackoffLimit),
			ActiveDeadlineSeconds: new(deadlineSeconds(c)),
		},
	}
}

// jobName is short whatever the length of the node's name, and always the same.
func jobName(c Config, nodeName string) string {
	sum := sha256.Sum256([]byte(nodeName))
	return c.Name + "-" + hex.EncodeToString(sum[:])[:suffixLength]
}

func deadlineSeconds(c Config) int64 { return int64((c.Timeout + orphanGrace) / time.Second) }

func labelsOf(c Config) map[string]string {
	return map[string]string{labelName: programName, labelInstance: c.Name, labelManagedBy: programName}
}
