// Package manifest creates the objects of manifests, for programs that do without kubectl, which takes long to compile.
package manifest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Create creates the objects of a manifest that choose chooses, and returns these. What exists already is left as it is.
func Create(
	ctx context.Context, config *rest.Config, manifest []byte, choose func(*unstructured.Unstructured) bool,
) ([]*unstructured.Unstructured, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(served)
	if err != nil {
		return nil, fmt.Errorf("list the kinds of the API server: %w", err)
	}
	objects, err := decode(manifest, choose)
	if err != nil {
		return nil, fmt.Errorf("decode a manifest: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, object := range objects {
		if err := create(ctx, client, mapper, object); err != nil {
			return nil, fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return objects, nil
}

func decode(manifest []byte, choose func(*unstructured.Unstructured) bool) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(document, &object.Object)
		}
		if err != nil {
			return nil, err
		}
		if object.GetKind() != "" && choose(object) { // other documents have comments only
			objects = append(objects, object)
		}
	}
}

func create(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	resource := client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		_, err = resource.Create(ctx, object, metav1.CreateOptions{})
	} else {
		if object.GetNamespace() == "" { // where kubectl would put it
			object.SetNamespace(metav1.NamespaceDefault)
		}
		_, err = resource.Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
