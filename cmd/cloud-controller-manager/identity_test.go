package main

import (
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/controller-manager/pkg/clientbuilder"
)

func TestControllerClients(t *testing.T) {
	t.Parallel()
	config := &rest.Config{Host: "https://example.invalid"}
	each := &clientbuilder.DynamicControllerClientBuilder{}
	own := clientbuilder.SimpleControllerClientBuilder{ClientConfig: config}
	for allowed, want := range map[bool]cloudprovider.ControllerClientBuilder{true: each, false: own} {
		kube := fake.NewClientset()
		kube.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
			review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
			asked := review.Spec.ResourceAttributes
			review.Status.Allowed = allowed && asked.Resource == "serviceaccounts" && asked.Subresource == "token" && asked.Verb == "create"
			return true, review, nil
		})
		got, err := controllerClients(t.Context(), kube, config, each)
		if err != nil || got != want {
			t.Errorf("tokens allowed %t: %T, %v, want %T", allowed, got, err, want)
		}
	}
}

func TestControllerClientsNeedsAnAnswer(t *testing.T) {
	t.Parallel()
	kube, down := fake.NewClientset(), errors.New("down")
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, down
	})
	if _, err := controllerClients(t.Context(), kube, &rest.Config{}, nil); !errors.Is(err, down) {
		t.Errorf("error %v, want the API server's", err)
	}
}
