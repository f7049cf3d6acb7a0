package manifest

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	text := "# a comment of its own\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: program}\n---\n" +
		"apiVersion: apps.kruise.io/v1alpha1\nkind: BroadcastJob\nmetadata: {name: job}\n"
	for want, choose := range map[string]func(*unstructured.Unstructured) bool{
		"program job": func(*unstructured.Unstructured) bool { return true },
		"program":     func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceAccount" },
	} {
		objects, err := decode([]byte(text), choose)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, object := range objects {
			names = append(names, object.GetName())
		}
		if got := slices.Equal(names, map[string][]string{"program job": {"program", "job"}, "program": {"program"}}[want]); !got {
			t.Errorf("decoded %v, want %s", names, want)
		}
	}
	if _, err := decode([]byte("kind: [ServiceAccount"), nil); err == nil {
		t.Error("malformed YAML is accepted")
	}
}
