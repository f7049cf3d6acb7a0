package rollout

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

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
