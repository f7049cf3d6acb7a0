package openkruise

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/manifest"
)

const (
	namespace = "kruise-system"
	// namePrefix is what OpenKruise's own installation puts before the names of its webhook configurations; the manager looks for
	// them by these names.
	namePrefix = "kruise-"
	// resource is the only one whose webhooks are installed: those of others would stand in the way of all pods and namespaces.
	resource = "broadcastjobs"
)

// install makes what the manager needs in the cluster and waits until the API server serves it: a manager that does not find a kind when it
// starts ignores it for ever.
func install(ctx context.Context, config *rest.Config, build string) error {
	text := []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n---\n")
	for _, name := range []string{"crds.yaml", "webhooks.yaml"} {
		content, err := os.ReadFile(filepath.Join(build, name))
		if err != nil {
			return fmt.Errorf("read the objects of OpenKruise (hack/kruise/build.sh %s makes them): %w", build, err)
		}
		text = append(append(text, content...), "\n---\n"...)
	}
	objects, err := manifest.Create(ctx, config, text, func(o *unstructured.Unstructured) bool {
		if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
			o.SetName(namePrefix + o.GetName())
			all, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			_ = unstructured.SetNestedSlice(o.Object, slices.DeleteFunc(all, func(webhook any) bool { return !isOurs(webhook) }), "webhooks")
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("install OpenKruise: %w", err)
	}
	if len(objects) < 4 { // the namespace, two configurations of webhooks, and kinds
		return fmt.Errorf("install OpenKruise: %s holds %d objects", build, len(objects))
	}
	crds, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, readyPoll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		list, failed := crds.CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
		if failed != nil {
			return false, nil // the deadline ends it
		}
		return !slices.ContainsFunc(list.Items, func(crd apiextensionsv1.CustomResourceDefinition) bool { return !established(&crd) }), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the API server serves OpenKruise's objects: %w", err)
	}
	return nil
}

// isOurs says whether a webhook is about the resource.
func isOurs(webhook any) bool {
	fields, _ := webhook.(map[string]any)
	rules, _, _ := unstructured.NestedSlice(fields, "rules")
	return slices.ContainsFunc(rules, func(rule any) bool {
		fields, _ := rule.(map[string]any)
		resources, _, _ := unstructured.NestedStringSlice(fields, "resources")
		return slices.Contains(resources, resource)
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
