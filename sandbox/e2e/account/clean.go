package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// noteJoining notes that a Node joins, before it does.
func (s *Suite) noteJoining(ctx context.Context) error {
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, keyJoined, joined)
	if _, err := s.o.Client.CoreV1().ConfigMaps(Namespace).Patch(ctx, record, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("note that a Node joins: %w", err)
	}
	return nil
}

// Clean removes everything that a run has made, also one that was killed. Without the namespace there is nothing: it is made first and
// goes last.
func (s *Suite) Clean(ctx context.Context) error {
	_, err := s.o.Client.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the namespace %s: %w", Namespace, err)
	}
	before, err := s.o.Client.CoreV1().ConfigMaps(Namespace).Get(ctx, record, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		// The run ended before it made anything but the namespace.
		return s.endNamespace(ctx)
	case err != nil:
		return fmt.Errorf("read what there was before: %w", err)
	}
	if err = s.o.Cluster.Official(ctx, false); err != nil {
		return fmt.Errorf("end the official CCM: %w", err)
	}
	if s.ended() != nil {
		s.manager = nil
	}
	if s.manager == nil {
		if err = s.start(ctx); err != nil {
			return err
		}
	}
	err = all(ctx, s.releaseJoined(before), s.endServices)
	if err = errors.Join(err, s.stop(ctx)); err != nil {
		return err
	}
	return all(ctx, s.endRoutes(before), s.orphans, s.endNamespace)
}

// releaseJoined releases the instance that joined, and waits until its Node is gone.
func (s *Suite) releaseJoined(before *corev1.ConfigMap) func(context.Context) error {
	return func(ctx context.Context) error {
		name := before.Data[keyJoined]
		if name == "" {
			return nil
		}
		if err := s.o.Cluster.Release(ctx, name); err != nil {
			return fmt.Errorf("release the instance that joined: %w", err)
		}
		return s.await(ctx, "the Node that joined is gone", func(ctx context.Context) string {
			node, err := s.o.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return ""
			case err == nil && node.Spec.ProviderID == "":
				// The manager has never known its instance, so that it must not delete the Node.
				err = s.o.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
			}
			return fmt.Sprintf("it is there, %v", err)
		})
	}
}

// endServices deletes all Services of the namespace, and waits until the manager has let them go.
func (s *Suite) endServices(ctx context.Context) error {
	return s.await(ctx, "the Services are gone", func(ctx context.Context) string {
		list, err := s.o.Client.CoreV1().Services(Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		left := []string{}
		for i := range list.Items {
			svc := &list.Items[i]
			left = append(left, svc.Name)
			if svc.DeletionTimestamp != nil {
				continue
			}
			if err := s.o.Client.CoreV1().Services(Namespace).Delete(ctx, svc.Name, metav1.DeleteOptions{}); err != nil &&
				!apierrors.IsNotFound(err) {
				return err.Error()
			}
		}
		return strings.Join(left, ", ")
	})
}

// endRoutes deletes the route entries that there were not before.
func (s *Suite) endRoutes(before *corev1.ConfigMap) func(context.Context) error {
	return func(ctx context.Context) error {
		had := strings.Split(before.Data[keyRoutes], "\n")
		return s.await(ctx, "the route entries of the run are gone", func(ctx context.Context) string {
			entries, err := s.routesIn(ctx)
			if err != nil {
				return err.Error()
			}
			entries = slices.DeleteFunc(entries, func(e alicloud.RouteEntry) bool { return slices.Contains(had, nameOf(&e)) })
			if len(entries) == 0 {
				return ""
			}
			failed, err := s.o.Cloud.DeleteRouteEntries(ctx, entries)
			return fmt.Sprintf("%s: %v", strings.Join(names(entries), ", "), errors.Join(append(failed, err)...))
		})
	}
}

// endNamespace deletes the namespace, which is the last thing that says that there was a run.
func (s *Suite) endNamespace(ctx context.Context) error {
	if err := s.o.Client.CoreV1().Namespaces().Delete(ctx, Namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the namespace %s: %w", Namespace, err)
	}
	return s.await(ctx, "the namespace is gone", func(ctx context.Context) string {
		if _, err := s.o.Client.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("it is there, %v", err)
		}
		return ""
	})
}
