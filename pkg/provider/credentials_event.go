package provider

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// reasonInvalidCredentials is the event's reason where changed keys cannot be used.
const reasonInvalidCredentials = "InvalidCredentials"

// credentialsObject carries the event. It is the vendor's ConfigMap also where the keys come from elsewhere: it is where
// users look for them, and no right is needed to name it. Its UID is left out, because reading it would need one.
func credentialsObject() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: metav1.NamespaceSystem, Name: "cloud-config"}
}

// tellBadCredentials makes an event of changed keys that cannot be used. Without it only the log would say so until the
// old keys end.
func tellBadCredentials(provider alicloud.CredentialsProvider, recorder record.EventRecorder) {
	watched, ok := provider.(interface{ OnProblem(tell func(error)) })
	if !ok {
		return
	}
	watched.OnProblem(func(err error) {
		recorder.Eventf(credentialsObject(), corev1.EventTypeWarning, reasonInvalidCredentials,
			"Changed credentials cannot be used; the last good ones serve on: %v", err)
	})
}
