package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// requests is how many requests the Service is sent at once.
const requests = 10

// serviceGetsAddress applies a Service of type LoadBalancer and waits for its address and its pods.
func serviceGetsAddress(ctx context.Context, s *story) (string, error) {
	if err := s.createFrom(ctx, "nginx.yaml"); err != nil {
		return "", err
	}
	err := s.until(ctx, func(ctx context.Context) (string, error) {
		service, err := s.cluster.Client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "nginx", metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("read the Service: %w", err)
		}
		if ingress := service.Status.LoadBalancer.Ingress; len(ingress) == 0 || ingress[0].IP == "" {
			return "the Service has no address", nil
		}
		s.address = service.Status.LoadBalancer.Ingress[0].IP + httpPort
		pods, err := s.pods(ctx, "nginx")
		if len(pods) < 2 {
			return fmt.Sprintf("%d of 2 nginx pods are ready", len(pods)), err
		}
		return "", err
	})
	if err != nil {
		return "", err
	}
	balancers, err := s.cluster.Cloud.LoadBalancers(ctx)
	if err != nil {
		return "", err
	}
	if len(balancers) != 1 {
		return "", fmt.Errorf("the cloud has %d load balancers, not 1", len(balancers))
	}
	return fmt.Sprintf("%s, an %s address of %s", s.address, balancers[0].AddressType, balancers[0].ID), nil
}

// requestsAreAnswered sends requests to the Service's address from inside the VPC until both pods have answered: the address may be
// there a moment before the last backend is.
func requestsAreAnswered(ctx context.Context, s *story) (string, error) {
	pods, err := s.pods(ctx, "nginx")
	if err != nil {
		return "", err
	}
	var answers map[string]int
	err = s.until(ctx, func(ctx context.Context) (string, error) {
		if answers, err = s.request(ctx); err != nil {
			return err.Error(), nil
		}
		for _, pod := range pods {
			if answers[pod.Name] == 0 {
				return fmt.Sprintf("pod %s has not answered: %v", pod.Name, answers), nil
			}
		}
		return "", nil
	})
	if err != nil {
		return "", err
	}
	return describe(answers), nil
}

// request sends requests to the Service and counts the answers by pod. A single failed one is an error.
func (s *story) request(ctx context.Context) (map[string]int, error) {
	answers := map[string]int{}
	from := s.instances()[0]
	for i := range requests {
		answer, err := s.cluster.Cloud.Get(ctx, from.ID, s.address)
		if err != nil {
			return nil, fmt.Errorf("request %d of %d to %s: %w", i+1, requests, s.address, err)
		}
		answers[answer]++
	}
	return answers, nil
}

func describe(answers map[string]int) string {
	var parts []string
	for _, pod := range slices.Sorted(maps.Keys(answers)) {
		parts = append(parts, fmt.Sprintf("%d by %s", answers[pod], pod))
	}
	return fmt.Sprintf("%d requests answered: %s", requests, strings.Join(parts, ", "))
}

// releasedNodeLeaves releases an instance and waits until nothing refers to it any more.
func releasedNodeLeaves(ctx context.Context, s *story) (string, error) {
	gone, err := s.toRelease(ctx)
	if err != nil {
		return "", err
	}
	if !s.cluster.Cloud.ReleaseInstance(gone.ID) {
		return "", fmt.Errorf("the cloud has no instance %s to release", gone.ID)
	}
	err = s.until(ctx, func(ctx context.Context) (string, error) {
		_, missing := s.cluster.Client.CoreV1().Nodes().Get(ctx, gone.NodeName, metav1.GetOptions{})
		if missing == nil {
			return "Node " + gone.NodeName + " is still there", nil
		}
		if !apierrors.IsNotFound(missing) {
			return "", fmt.Errorf("read node %s: %w", gone.NodeName, missing)
		}
		return s.tracesOf(ctx, gone.ID)
	})
	if err != nil {
		return "", err
	}
	answers, err := s.request(ctx)
	if err != nil {
		return "", fmt.Errorf("after node %s has left: %w", gone.NodeName, err)
	}
	return fmt.Sprintf("%s (%s) left cluster, load balancer and route table; %s", gone.NodeName, gone.ID, describe(answers)), nil
}

// toRelease chooses a machine on which no cloud controller manager runs, which leaves one of the three. If the leader's machine went, the next
// leader would never have seen the instance, and takes the Node of one for gone only after minutes.
func (s *story) toRelease(ctx context.Context) (cluster.Machine, error) {
	managers, err := s.managers(ctx)
	if err != nil {
		return cluster.Machine{}, err
	}
	for _, machine := range s.instances() {
		if !slices.ContainsFunc(managers, func(pod corev1.Pod) bool { return pod.Spec.NodeName == machine.NodeName }) {
			return machine, nil
		}
	}
	return cluster.Machine{}, errors.New("a cloud controller manager runs on every machine")
}

// tracesOf says where the cloud still refers to an instance.
func (s *story) tracesOf(ctx context.Context, instanceID string) (string, error) {
	routes, err := s.cluster.Cloud.CustomRoutes(ctx)
	if err != nil {
		return "", err
	}
	for _, route := range routes {
		if route.NextHop == instanceID {
			return fmt.Sprintf("the route table still leads %s to %s", route.CIDR, instanceID), nil
		}
	}
	balancers, err := s.cluster.Cloud.LoadBalancers(ctx)
	if err != nil {
		return "", err
	}
	for _, balancer := range balancers {
		if slices.Contains(balancer.Servers, instanceID) {
			return fmt.Sprintf("load balancer %s still has %s as a backend", balancer.ID, instanceID), nil
		}
	}
	return "", nil
}

// serviceIsDeleted deletes the Service and waits until both it and its load balancer are gone.
func serviceIsDeleted(ctx context.Context, s *story) (string, error) {
	services := s.cluster.Client.CoreV1().Services(metav1.NamespaceDefault)
	if err := services.Delete(ctx, "nginx", metav1.DeleteOptions{}); err != nil {
		return "", fmt.Errorf("delete the Service: %w", err)
	}
	err := s.until(ctx, func(ctx context.Context) (string, error) {
		_, err := services.Get(ctx, "nginx", metav1.GetOptions{})
		if err == nil {
			return "the Service is still there", nil
		}
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("read the Service: %w", err)
		}
		balancers, err := s.cluster.Cloud.LoadBalancers(ctx)
		if len(balancers) > 0 {
			return "", fmt.Errorf("the Service is gone but its load balancer %s is not", balancers[0].ID)
		}
		if err != nil {
			return "", err
		}
		// The cloud closes the address a moment after it has answered that the load balancer is gone.
		if _, err := s.cluster.Cloud.Get(ctx, s.instances()[0].ID, s.address); err == nil {
			return s.address + " still answers", nil
		}
		return "", nil
	})
	if err != nil {
		return "", err
	}
	return "Service, finalizer and load balancer are gone", nil
}
