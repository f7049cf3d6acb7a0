package provider

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestBadCredentialsAreAnEvent breaks the key in the file from which a running manager has it: the event names the file
// and the field, shows no part of a key, and is not repeated for the same content.
func TestBadCredentialsAreAnEvent(t *testing.T) {
	t.Parallel()
	const secret = "s3cret with spaces"
	config := keys
	config.VPCID, config.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
	for name, test := range map[string]struct {
		good, bad string
		byFlag    bool
		forbidden bool // to read the ConfigMap
		field     string
	}{
		"cloud-config": {
			good:  configText("emulator", ""),
			bad:   `{"Global": {"accessKeyID": "ZW11bGF0b3I=", "accessKeySecret": "` + secret + `"}}`,
			field: "Global.accessKeySecret",
		},
		"credentials file": {
			good: "[default]\naccess_key_id = emulator\naccess_key_secret = emulator-secret\n", byFlag: true, forbidden: true,
			bad:   "[default]\naccess_key_id = emulator\naccess_key_secret = " + secret + "\n",
			field: "access_key_secret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "keys")
			write(t, path, test.good)
			opts := CredentialsOptions{Config: config, File: path, Metadata: alicloud.NewMetadata("http://127.0.0.1:0")}
			if !test.byFlag {
				opts.Config.Path, opts.File = path, ""
			}
			cloud := New(config, startCloud(t).environment(""))
			const uid = "0f2c3d4e-0000-4000-8000-00000000beef"
			kube := allowing(true,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "cloud-config", UID: uid}})
			if test.forbidden {
				kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "cloud-config", nil)
				})
			}
			if err := cloud.Connect(t.Context(), kube); err != nil {
				t.Fatal(err)
			}
			provider, _ := Credentials(opts)
			refresher, ok := provider.(alicloud.Refresher)
			if !ok {
				t.Fatalf("%T is not watched", provider)
			}
			cloud.ctx, cloud.kube, cloud.credentials = t.Context(), kube, provider
			cloud.SetInformers(informers.NewSharedInformerFactory(kube, 0))
			reread := func() {
				if _, err := refresher.Refresh(t.Context(), alicloud.Credentials{}); err != nil {
					t.Error(err)
				}
			}
			reread()
			write(t, path, test.bad)
			reread()
			reread()
			var events []corev1.Event
			err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
				list, err := kube.CoreV1().Events(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
				if err != nil {
					return false, err
				}
				events = list.Items
				return len(events) > 0, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(events)
			if err != nil {
				t.Fatal(err)
			}
			if len(events) != 1 || events[0].Count != 1 || events[0].Reason != reasonInvalidCredentials ||
				events[0].InvolvedObject.Name != "cloud-config" {
				t.Errorf("events %s, want one of the ConfigMap", text)
			}
			if got := events[0].InvolvedObject.UID; got != map[bool]types.UID{true: "", false: uid}[test.forbidden] {
				t.Errorf("the event is of UID %q, want %q where the ConfigMap may be read, else none", got, uid)
			}
			for _, want := range []string{path, test.field} {
				if !strings.Contains(events[0].Message, want) {
					t.Errorf("message %q does not say %q", events[0].Message, want)
				}
			}
			for _, part := range []string{"s3cret", "emulator-secret", "with spaces"} {
				if strings.Contains(string(text), part) {
					t.Errorf("the event shows %q of a key", part)
				}
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
