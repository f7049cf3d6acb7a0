package demo

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

//go:embed manifests
var manifests embed.FS

// createFrom creates the objects of one of the demo's manifests.
func (s *story) createFrom(ctx context.Context, name string) error {
	content, err := readFile(manifests, "manifests/"+name)
	if err != nil {
		return err
	}
	return s.create(ctx, content)
}

// create creates the objects of a manifest. Not with kubectl: the demo on light nodes does without it, because it takes long to compile.
func (s *story) create(ctx context.Context, manifest []byte) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a manifest: %w", err)
		}
		object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			return fmt.Errorf("decode a manifest: %w", err)
		}
		core, apps := s.cluster.Client.CoreV1(), s.cluster.Client.AppsV1()
		switch object := object.(type) {
		case *corev1.ConfigMap:
			_, err = core.ConfigMaps(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		case *corev1.Service:
			_, err = core.Services(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		case *appsv1.Deployment:
			_, err = apps.Deployments(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		case *appsv1.DaemonSet:
			_, err = apps.DaemonSets(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		default:
			err = errors.ErrUnsupported
		}
		if err != nil {
			return fmt.Errorf("create a %s: %w", kind.Kind, err)
		}
	}
}

func readFile(from fs.FS, name string) ([]byte, error) {
	content, err := fs.ReadFile(from, name)
	if err != nil {
		return nil, fmt.Errorf("read an embedded file: %w", err)
	}
	return content, nil
}
