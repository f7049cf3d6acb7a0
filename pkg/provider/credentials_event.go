package provider

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// reasonInvalidCredentials is the event's reason where changed keys cannot be used.
const reasonInvalidCredentials = "InvalidCredentials"

// credentialsConfigMap carries the event. It is the vendor's ConfigMap also where the keys come from elsewhere: it is where
// users look for them.
const credentialsConfigMap = "cloud-config"

// credentialsObjectTimeout bounds reading the ConfigMap; the event does not wait longer for its UID.
const credentialsObjectTimeout = 10 * time.Second

// credentialsObject refers to the ConfigMap. "kubectl describe" finds events by UID, so it is read where it is there and the role
// allows that, as the chart's does and the vendor's does not; without it "kubectl events" shows the event all the same.
func credentialsObject(ctx context.Context, kube kubernetes.Interface) *corev1.ObjectReference {
	object := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: metav1.NamespaceSystem, Name: credentialsConfigMap}
	ctx, cancel := context.WithTimeout(ctx, credentialsObjectTimeout)
	defer cancel()
	stored, err := kube.CoreV1().ConfigMaps(object.Namespace).Get(ctx, object.Name, metav1.GetOptions{})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("The event is not shown by kubectl describe: its ConfigMap cannot be read", "configMap",
			klog.KRef(object.Namespace, object.Name), "reason", err)
		return object
	}
	object.UID = stored.UID
	return object
}

// reportBadCredentials makes an event of changed keys that cannot be used. Without it only the log would say so until the
// old keys end.
func reportBadCredentials(
	ctx context.Context, provider alicloud.CredentialsProvider, kube kubernetes.Interface, recorder record.EventRecorder,
) {
	watched, ok := provider.(interface{ OnProblem(report func(error)) })
	if !ok {
		return
	}
	watched.OnProblem(func(err error) {
		go func() { // it may not wait, and reading the ConfigMap does
			recorder.Eventf(credentialsObject(ctx, kube), corev1.EventTypeWarning, reasonInvalidCredentials,
				"Changed credentials cannot be used; the previous credentials stay in use: %v", err)
		}()
	})
}
