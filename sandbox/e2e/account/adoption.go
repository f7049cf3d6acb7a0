package account

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// adoption: the official CCM makes a CLB, the manager takes it over and changes nothing, and the official CCM takes it back.
func (s *Suite) adoption(ctx context.Context) error {
	const name = "adoption"
	if err := all(ctx, s.stop, s.official(true)); err != nil {
		return err
	}
	if err := s.create(ctx, name, "", internet()); err != nil {
		return err
	}
	address, id, err := s.servedByOfficial(ctx, name)
	if err != nil {
		return err
	}
	if err = s.answered(address, 80)(ctx); err != nil {
		return err
	}
	made, err := s.shown(ctx, id)
	if err != nil {
		return err
	}
	unchanged := s.unchanged(name, address, id, made)
	err = all(ctx,
		s.official(false), s.start, s.synced(name), unchanged,
		s.stop, s.forget(name), s.official(true), s.takenBack(name), unchanged,
		s.official(false), s.start)
	if err != nil {
		return err
	}
	return s.removed(ctx, name, func(ctx context.Context) error {
		_, err := s.o.Cloud.DescribeLoadBalancer(ctx, id)
		return err //nolint:wrapcheck // judged, not shown
	})
}

// unchanged checks that a Service still has the same CLB at the same address, and that this is shown as it was made.
func (s *Suite) unchanged(name, address, id, made string) func(context.Context) error {
	return func(ctx context.Context) error {
		now, sameID, err := s.served(ctx, name)
		if err != nil {
			return err
		}
		shown, err := s.shown(ctx, sameID)
		if err != nil {
			return err
		}
		if now != address || sameID != id || shown != made {
			return fmt.Errorf("%w: the CLB was %s %s\n%s\nand is %s %s\n%s", errMissing, id, address, made, sameID, now, shown)
		}
		return s.answered(address, 80)(ctx)
	}
}

func (s *Suite) official(run bool) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.o.Cluster.Official(ctx, run); err != nil {
			return fmt.Errorf("the official CCM: %w", err)
		}
		return nil
	}
}

// servedByOfficial is [Suite.served] once the official CCM is done: it sets its hash last.
func (s *Suite) servedByOfficial(ctx context.Context, name string) (address, id string, err error) {
	if err := s.takenBack(name)(ctx); err != nil {
		return "", "", err
	}
	return s.served(ctx, name)
}

// forget removes the hash, without which the official CCM compares everything.
func (s *Suite) forget(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, driver.LabelHash)
		if _, err := s.o.Client.CoreV1().Services(Namespace).Patch(ctx, name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("remove the hash of the Service %s: %w", name, err)
		}
		return nil
	}
}

// takenBack waits until the official CCM has compared everything.
func (s *Suite) takenBack(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return s.await(ctx, "the official CCM has compared everything", func(ctx context.Context) string {
			svc, err := s.o.Client.CoreV1().Services(Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil || svc.Labels[driver.LabelHash] == "" {
				return fmt.Sprintf("no hash, %v", err)
			}
			return ""
		})
	}
}

// synced waits until the manager says that all is as it should be.
func (s *Suite) synced(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return s.await(ctx, "the manager has taken the Service over", func(ctx context.Context) string {
			svc, err := s.o.Client.CoreV1().Services(Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			for _, c := range svc.Status.Conditions {
				if c.Type == service.ConditionSynced && c.Status == metav1.ConditionTrue {
					return ""
				}
			}
			return fmt.Sprintf("conditions %v", svc.Status.Conditions)
		})
	}
}

// shown is everything of a CLB that a manager writes, as text.
func (s *Suite) shown(ctx context.Context, id string) (string, error) {
	lb, err := s.o.Cloud.DescribeLoadBalancer(ctx, id)
	if err != nil {
		return "", fmt.Errorf("read the CLB: %w", err)
	}
	slices.SortFunc(lb.Tags, func(a, b alicloud.Tag) int { return strings.Compare(a.Key, b.Key) })
	listeners, err := s.o.Cloud.DescribeListeners(ctx, id)
	if err != nil {
		return "", fmt.Errorf("read the listeners: %w", err)
	}
	groups, err := s.o.Cloud.DescribeVServerGroups(ctx, id)
	if err != nil {
		return "", fmt.Errorf("read the vServer groups: %w", err)
	}
	for i := range groups {
		if groups[i], err = s.o.Cloud.DescribeVServerGroup(ctx, groups[i].ID); err != nil {
			return "", fmt.Errorf("read a vServer group: %w", err)
		}
		slices.SortFunc(groups[i].Backends, func(a, b alicloud.Backend) int { return strings.Compare(a.String(), b.String()) })
	}
	text, err := json.MarshalIndent(map[string]any{"clb": lb, "listeners": listeners[id], "groups": groups}, "", " ")
	if err != nil {
		return "", fmt.Errorf("encode the CLB: %w", err)
	}
	return string(text), nil
}
