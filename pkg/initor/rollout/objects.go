package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	kruise "github.com/openkruise/kruise-api/apps/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
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

// WriteManifest writes objects as YAML documents, which `kubectl apply` takes.
func WriteManifest(w io.Writer, objects []runtime.Object) error {
	for _, object := range objects {
		fields, err := fieldsOf(object)
		if err != nil {
			return err
		}
		text, err := yaml.Marshal(fields)
		if err != nil {
			return fmt.Errorf("encode a %T: %w", object, err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
	}
	return nil
}

// fieldsOf returns what is to be said about an object. The status is not ours to say anything about, but Go's types have one.
func fieldsOf(object runtime.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert a %T: %w", object, err)
	}
	delete(fields, "status")
	return fields, nil
}

const (
	// terminationLog is where the container reports its result; it is Kubernetes' own default.
	terminationLog = corev1.TerminationMessagePathDefault
	// nobody is the user of images that need no privilege.
	nobody = 65532
)

// podTemplate is the pod that runs the initializer on the named node, or on every node but virtual-kubelet's if there is no
// name. A name pins the pod without the scheduler, which may not run yet on a cluster whose nodes are not initialized.
func podTemplate(c Config, nodeName string) corev1.PodTemplateSpec {
	spec := corev1.PodSpec{
		ServiceAccountName: c.Name,
		NodeName:           nodeName,
		RestartPolicy:      corev1.RestartPolicyOnFailure,
		// The metadata service answers on the node's own network, also before the pod network and the cluster's DNS work.
		HostNetwork:       true,
		DNSPolicy:         corev1.DNSDefault,
		PriorityClassName: "system-node-critical",
		// Cordoned, tainted and not yet ready nodes need their provider ID as well.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			RunAsUser:      ptr.To[int64](nobody),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{container(c)},
	}
	if nodeName == "" {
		spec.Affinity = noVirtualKubelet()
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(c)}, Spec: spec}
}

func container(c Config) corev1.Container {
	return corev1.Container{
		Name:            programName,
		Image:           c.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/usr/bin/init"},
		Args:            arguments(c),
		Env: []corev1.EnvVar{
			{Name: initor.EnvNodeName, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
			{Name: initor.EnvReportFile, Value: terminationLog},
		},
		// After a failure there is no report, and the last log line is the reason.
		TerminationMessagePath:   terminationLog,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		},
	}
}

func arguments(c Config) []string {
	if c.PrefixedProviderIDs {
		return []string{"--prefixed-provider-ids"}
	}
	return nil
}

func noVirtualKubelet() *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: nodes.LabelType, Operator: corev1.NodeSelectorOpNotIn, Values: []string{nodes.TypeVirtualKubelet},
			}}}},
		},
	}}
}

// Driver is what puts one pod on each node.
type Driver string

// The drivers.
const (
	// DriverBroadcastJob makes one BroadcastJob, which reaches nodes that join later too. It needs OpenKruise.
	DriverBroadcastJob Driver = "broadcastjob"
	// DriverJob makes one Job for each node that is there. It needs nothing.
	DriverJob Driver = "job"
)

// Defaults of a [Config].
const (
	DefaultName      = "provider-initor-run"
	DefaultNamespace = "kube-system"
	DefaultTimeout   = 10 * time.Minute
)

// maxNameLength leaves room in the name of a Job, which may have 63 characters, for what distinguishes the Jobs.
const maxNameLength = validation.DNS1123LabelMaxLength - 1 - suffixLength

// Config says what a rollout makes.
type Config struct {
	// Name is that of every object; those of Jobs have a suffix. A DNS label of at most 52 characters.
	Name string
	// Namespace takes the ServiceAccount and the pods. It must exist and admit pods with hostNetwork.
	Namespace string
	// Image is the initializer's, with its tag.
	Image string
	// Driver puts the pods on the nodes.
	Driver Driver
	// Keep makes a BroadcastJob that does not complete, for nodes that join later. Not with [DriverJob].
	Keep bool
	// Timeout bounds the pods' work, so that they end also if nobody is there to remove them. More than zero.
	Timeout time.Duration
	// PrefixedProviderIDs has the pods write provider IDs with the scheme "alicloud://".
	PrefixedProviderIDs bool
	// AdmissionPolicy adds a policy that lets the pods only set an empty provider ID, and only on their own nodes. It requires Kubernetes
	// 1.30; Run leaves it out if the API server does not know such policies.
	AdmissionPolicy bool
	// Nodes are the names of the nodes that [DriverJob] makes Jobs for; the other driver finds its nodes itself.
	Nodes []string
}

// Validate returns what is wrong with c, everything at once, or nil.
func (c Config) Validate() error {
	var errs []error
	if problems := validation.IsDNS1123Label(c.Name); len(problems) > 0 || len(c.Name) > maxNameLength {
		errs = append(errs, fmt.Errorf("name is %q: a DNS label of at most %d characters is accepted", c.Name, maxNameLength))
	}
	if problems := validation.IsDNS1123Label(c.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("namespace is %q: %s", c.Namespace, strings.Join(problems, "; ")))
	}
	if c.Image == "" {
		errs = append(errs, errors.New("image is empty"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout is %s: a positive duration is accepted", c.Timeout))
	}
	switch {
	case c.Driver != DriverBroadcastJob && c.Driver != DriverJob:
		errs = append(errs, fmt.Errorf("driver is %q: %s and %s are accepted", c.Driver, DriverBroadcastJob, DriverJob))
	case c.Driver == DriverJob && c.Keep:
		errs = append(errs, fmt.Errorf("keep needs the driver %s: a Job reaches no node that joins later", DriverBroadcastJob))
	}
	return initor.OneLine(errs...)
}
