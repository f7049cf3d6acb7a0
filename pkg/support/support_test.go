package support

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

var made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestRedactor: a secret is taken out in each form in which something may show it, a longer one before one that it begins with.
func TestRedactor(t *testing.T) {
	t.Parallel()
	const secret, short = "s3cr<t/+key&=", "s3cr"
	r := NewRedactor(secret, "", short)
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte(secret)),
		`s3cr\u003ct/+key\u0026=`, short,
	} {
		if got := r.Text("a " + form + " b"); got != "a "+Redacted+" b" {
			t.Errorf("%q becomes %q", form, got)
		}
	}
	if got := r.Text("http://user:pass@proxy:3128/x and http://proxy/a@b"); got != "http://"+Redacted+"@proxy:3128/x and http://proxy/a@b" {
		t.Errorf("URLs become %q", got)
	}
	if got := r.Text("http://user:p@ss'word@proxy:3128/ and http://proxy?mail=a@b"); got != "http://"+Redacted+
		"@proxy:3128/ and http://proxy?mail=a@b" {
		t.Errorf("URLs become %q", got)
	}
	if got := NewRedactor().Text("nothing is secret"); got != "nothing is secret" {
		t.Errorf("without secrets: %q", got)
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := NewArchive(&out, NewRedactor("hush"), "dir", made)
	a.Text("a.txt", "a text", "say hush\n")
	a.JSON("b.json", "a value", map[string]string{"key": "hush"})
	a.JSON("c.json", "no value", func() {})
	a.Missing("d", errors.New("two\nlines of hush"))
	missing, err := a.Close()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"dir/a.txt": "say [redacted]\n", "dir/b.json": "{\n  \"key\": \"[redacted]\"\n}\n",
		"dir/README.txt": "Support bundle of cloud-controller-manager, created 2026-01-02T03:04:05Z\n\na.txt                        a text\nb.json                       a value\n" +
			"\nAccess keys, tokens and passwords are replaced with [redacted]. Names, addresses and IDs of your resources are not.\n" +
			"\nMissing:\nc.json: json: unsupported type: func()\nd: two lines of [redacted]\n",
	}
	if diff := cmp.Diff(want, testkit.Unpack(t, &out)); diff != "" || len(missing) != 2 {
		t.Errorf("missing %q, files (-want +got):\n%s", missing, diff)
	}
}

// TestArchiveOnAFullDisk: an archive that cannot be written is an error, not a short archive.
func TestArchiveOnAFullDisk(t *testing.T) {
	t.Parallel()
	a := NewArchive(full{}, NewRedactor(), "dir", made)
	a.Text("a.txt", "much", strings.Repeat("0123456789abcdef", 1<<14))
	if _, err := a.Close(); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func objects(secret string) []runtime.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "kube-system"} }
	web := &corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	web.Annotations = map[string]string{"example.com/password": "other", "service.beta.kubernetes.io/alibaba-cloud-x": "y " + secret}
	web.Status.Conditions = []metav1.Condition{{Type: "Synced", Status: metav1.ConditionFalse, Reason: "Because"}}
	event := &corev1.Event{
		ObjectMeta: meta("e"), Source: corev1.EventSource{Component: "ours"}, Reason: "Failed", Message: "key " + secret + "\nis wrong",
		Type:           "Warning",
		InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: "default", Name: "web"}, LastTimestamp: metav1.NewTime(made),
	}
	theirs := &corev1.Event{ObjectMeta: meta("f"), Source: corev1.EventSource{Component: "theirs"}, Message: "their message"}
	pod := &corev1.Pod{ObjectMeta: meta("ccm-1"), Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "image:1", Args: []string{"--v=2"}, Env: []corev1.EnvVar{{Name: "SOME_PASSWORD", Value: "in-the-environment"}},
	}}}}
	pod.Labels = map[string]string{"app": "ccm"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{"example.com/token": "of-a-node"}},
		Spec: corev1.NodeSpec{ProviderID: "cn-hangzhou.i-1"}}
	return []runtime.Object{web, &corev1.Service{ObjectMeta: meta("plain")}, event, theirs, pod, node}
}

func collect(t *testing.T, kube *fake.Clientset, secret string) (files map[string]string, missing []string) {
	t.Helper()
	var out bytes.Buffer
	a := NewArchive(&out, NewRedactor(secret), "d", made)
	Cluster{
		Kube: kube, Namespace: "kube-system", Selector: "app=ccm", Components: []string{"ours"},
		Prefixes: []string{"service.beta.kubernetes.io/"}, Write: "fake logs",
		Metrics: func(context.Context, string) (string, error) { return "metric 1\n", nil },
	}.Collect(t.Context(), a)
	missing, err := a.Close()
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Unpack(t, &out), missing
}

// TestCollect: what belongs to the manager is there; secrets, and what other programs wrote into objects, are not.
func TestCollect(t *testing.T) {
	t.Parallel()
	const secret = "very-secret-key"
	files, missing := collect(t, fake.NewClientset(objects(secret)...), secret)
	if len(missing) > 0 {
		t.Errorf("missing: %q", missing)
	}
	for name, want := range map[string]string{
		"d/events.txt":    "2026-01-02T03:04:05Z Warning Failed Service default/web x1: key [redacted] is wrong\n",
		"d/services.json": `"reason": "Because"`,
		"d/nodes.json":    `"providerID": "cn-hangzhou.i-1"`, "d/pods.json": `"--v=2"`, "d/logs/ccm-1.log": "fake logs",
		"d/writes.txt":        "ccm-1 fake logs",
		"d/metrics/ccm-1.txt": "metric 1\n", "d/leases.json": "{}", "d/kubernetes.json": "gitVersion",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, files[name])
		}
	}
	all := fmt.Sprint(files)
	for _, text := range []string{secret, "example.com/", "in-the-environment", "of-a-node", "their message", `"plain"`} {
		if strings.Contains(all, text) {
			t.Errorf("the archive has %q", text)
		}
	}
}

// TestCollectWhatMayBeRead: whoever may not read something gets the rest, and a list of what is missing.
func TestCollectWhatMayBeRead(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset(objects("none")...)
	for _, resource := range []string{"events", "leases"} {
		kube.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource(resource), "", errors.New("no role"))
		})
	}
	files, missing := collect(t, kube, "")
	if len(missing) != 2 || !strings.HasPrefix(missing[0], "events.txt: events is forbidden") || files["d/services.json"] == "" ||
		!strings.Contains(files["d/README.txt"], missing[1]) {
		t.Errorf("missing %q, README:\n%s", missing, files["d/README.txt"])
	}
	for i := range 2 {
		if err := kube.CoreV1().Pods("kube-system").Delete(t.Context(), "ccm-1", metav1.DeleteOptions{}); err != nil && i == 0 {
			t.Fatal(err)
		}
	}
	if _, missing = collect(t, kube, ""); len(missing) != 3 ||
		missing[2] != "pods.json: namespace kube-system has no pod with the labels app=ccm" {
		t.Errorf("without a pod: missing %q", missing)
	}
}
