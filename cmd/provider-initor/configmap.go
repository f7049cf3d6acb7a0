package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// defaultConfigMap is the manager's, and cloudConfigKey is its key.
const (
	defaultConfigMap = "kube-system/cloud-config"
	cloudConfigKey   = "cloud-config.conf"
)

// configMapGetter reads a ConfigMap.
type configMapGetter func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)

// configMapSource asks ECS with the cloud-config of a ConfigMap, which it reads when it is asked first: the role of most pods does
// not allow that, and most nodes never need it.
type configMapSource struct {
	get             configMapGetter
	namespace, name string
	environment     provider.Environment

	ecs      *initor.ECSSource // once the ConfigMap was read
	unusable error             // why that is of no use, once that is known
}

func newConfigMapSource(get configMapGetter, path string, environment provider.Environment) (*configMapSource, error) {
	namespace, name, _ := strings.Cut(path, "/")
	if namespace == "" || name == "" {
		return nil, fmt.Errorf("--cloud-config-map is %q: NAMESPACE/NAME such as %s is accepted, or nothing", path, defaultConfigMap)
	}
	return &configMapSource{get: get, namespace: namespace, name: name, environment: environment}, nil
}

// Name implements [initor.Source].
func (*configMapSource) Name() string { return "ECS" }

// Identify implements [initor.Source].
func (s *configMapSource) Identify(ctx context.Context, n *corev1.Node) (node.ProviderID, error) {
	if s.ecs == nil && s.unusable == nil {
		if err := s.read(ctx); err != nil {
			return node.ProviderID{}, err
		}
	}
	if s.unusable != nil {
		return node.ProviderID{}, s.unusable
	}
	return s.ecs.Identify(ctx, n)
}

// read returns an error only if the API server may answer another time.
func (s *configMapSource) read(ctx context.Context) error {
	stored, err := s.get(ctx, s.namespace, s.name)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsUnauthorized(err):
		s.unusable = fmt.Errorf("%w: the cloud-config cannot be read: %w", initor.ErrNotUsable, err)
		return nil
	case err != nil:
		return fmt.Errorf("read ConfigMap %s/%s: %w", s.namespace, s.name, err)
	}
	if s.ecs, err = s.parse(stored); err != nil {
		s.unusable = fmt.Errorf("%w: ConfigMap %s/%s, key %s: %w", initor.ErrIncomplete, s.namespace, s.name, cloudConfigKey, err)
	}
	return nil
}

func (s *configMapSource) parse(stored *corev1.ConfigMap) (*initor.ECSSource, error) {
	config, err := provider.ReadConfig(strings.NewReader(stored.Data[cloudConfigKey]))
	if err != nil {
		return nil, err
	}
	return ecsSourceOf(config, s.environment)
}
