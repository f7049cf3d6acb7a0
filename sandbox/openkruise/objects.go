package openkruise

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "kruise-system"
	// namePrefix is what OpenKruise's own installation puts before the names of its webhook configurations; the manager looks for
	// them by these names.
	namePrefix = "kruise-"
	// resource is the only one whose webhooks are installed: those of others would stand in the way of all pods and namespaces.
	resource = "broadcastjobs"
)

// objects are what the manager needs in the cluster.
type objects struct {
	crds       []*apiextensionsv1.CustomResourceDefinition
	mutating   *admissionv1.MutatingWebhookConfiguration
	validating *admissionv1.ValidatingWebhookConfiguration
}

func readObjects(dir string) (*objects, error) {
	o := &objects{}
	crds, err := readDocuments[apiextensionsv1.CustomResourceDefinition](dir, "crds.yaml", "CustomResourceDefinition")
	if err != nil {
		return nil, err
	}
	mutating, err := readDocuments[admissionv1.MutatingWebhookConfiguration](dir, "webhooks.yaml", "MutatingWebhookConfiguration")
	if err != nil {
		return nil, err
	}
	validating, err := readDocuments[admissionv1.ValidatingWebhookConfiguration](dir, "webhooks.yaml", "ValidatingWebhookConfiguration")
	if err != nil {
		return nil, err
	}
	if len(crds) == 0 || len(mutating) != 1 || len(validating) != 1 {
		return nil, fmt.Errorf("%s holds %d CustomResourceDefinitions and %d and %d webhook configurations, want some and one each",
			dir, len(crds), len(mutating), len(validating))
	}
	o.crds, o.mutating, o.validating = crds, mutating[0], validating[0]
	o.mutating.Name, o.validating.Name = namePrefix+o.mutating.Name, namePrefix+o.validating.Name
	o.mutating.Webhooks = slices.DeleteFunc(o.mutating.Webhooks, func(w admissionv1.MutatingWebhook) bool { return !isOurs(w.Rules) })
	o.validating.Webhooks = slices.DeleteFunc(o.validating.Webhooks, func(w admissionv1.ValidatingWebhook) bool { return !isOurs(w.Rules) })
	return o, nil
}

// readDocuments decodes the documents of one kind.
func readDocuments[T any](dir, name, kind string) ([]*T, error) {
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("read the objects of OpenKruise (hack/kruise/build.sh %s makes them): %w", dir, err)
	}
	var objects []*T
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		var meta metav1.TypeMeta
		if err == nil {
			err = yaml.Unmarshal(document, &meta)
		}
		object := new(T)
		if err == nil && meta.Kind == kind {
			err = yaml.UnmarshalStrict(document, object)
			objects = append(objects, object)
		}
		if err != nil {
			return nil, fmt.Errorf("decode %s of OpenKruise: %w", name, err)
		}
	}
}

func isOurs(rules []admissionv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rules, func(r admissionv1.RuleWithOperations) bool { return slices.Contains(r.Resources, resource) })
}

// install makes the objects and waits until the API server serves them: a manager that does not find a kind when it starts ignores it
// for ever.
func (o *objects) install(ctx context.Context, config *rest.Config) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	crds, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	var noCRDs []error
	for _, crd := range o.crds {
		_, noCRD := crds.CustomResourceDefinitions().Create(ctx, crd, metav1.CreateOptions{})
		noCRDs = append(noCRDs, noCRD)
	}
	_, noNamespace := kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	_, noMutating := kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, o.mutating, metav1.CreateOptions{})
	_, noValidating := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, o.validating, metav1.CreateOptions{})
	for _, err = range append(noCRDs, noNamespace, noMutating, noValidating) {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install OpenKruise: %w", err)
		}
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

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
