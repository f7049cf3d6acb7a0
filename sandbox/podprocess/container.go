package podprocess

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is one run of a pod's container.
type container struct {
	corev1.Container
	pod *corev1.Pod
	dir string
	// mounts are the directories that stand for the container's, by their path there.
	mounts map[string]string
}

// mount writes the container's ConfigMaps, Secrets and tokens as files.
func (r *Runner) mount(ctx context.Context, c *container) error {
	c.mounts = map[string]string{}
	for _, mount := range c.VolumeMounts {
		files, err := r.volume(ctx, c.pod, mount.Name)
		if err != nil {
			return fmt.Errorf("volume %s: %w", mount.Name, err)
		}
		if files == nil {
			continue
		}
		dir := filepath.Join(c.dir, mount.Name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("volume %s: %w", mount.Name, err)
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				return fmt.Errorf("volume %s: %w", mount.Name, err)
			}
		}
		c.mounts[mount.MountPath] = dir
	}
	return nil
}

// volume returns the files of a volume, nil for a kind that has none here.
func (r *Runner) volume(ctx context.Context, pod *corev1.Pod, name string) (map[string][]byte, error) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != name {
			continue
		}
		switch {
		case volume.ConfigMap != nil:
			m, err := r.opts.Client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			files := map[string][]byte{}
			for key, text := range m.Data {
				files[key] = []byte(text)
			}
			return files, nil
		case volume.Secret != nil:
			s, err := r.opts.Client.CoreV1().Secrets(pod.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			files := maps.Clone(s.Data)
			if files == nil {
				files = map[string][]byte{}
			}
			for _, item := range volume.Secret.Items {
				files[item.Path] = s.Data[item.Key]
			}
			return files, nil
		case volume.Projected != nil && len(volume.Projected.Sources) == 1 && volume.Projected.Sources[0].ServiceAccountToken != nil:
			source := volume.Projected.Sources[0].ServiceAccountToken
			token, err := r.token(ctx, pod, source.Audience)
			return map[string][]byte{source.Path: []byte(token)}, err
		}
	}
	return nil, nil
}

// outside replaces a path of the container by the one that stands for it.
func (c *container) outside(text string) string {
	for path, dir := range c.mounts {
		if text = strings.ReplaceAll(text, path+"/", dir+"/"); strings.HasSuffix(text, path) {
			text = strings.TrimSuffix(text, path) + dir
		}
	}
	return text
}

// environment returns the container's variables. The termination log is a file of the container's directory.
func (r *Runner) environment(ctx context.Context, c *container) ([]string, error) {
	var env []string
	for _, variable := range c.Env {
		value := c.outside(variable.Value)
		if variable.ValueFrom != nil {
			var err error
			if value, err = r.valueFrom(ctx, c, variable.ValueFrom); err != nil {
				return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
			}
		}
		if value == c.TerminationMessagePath {
			value = c.terminationLog()
		}
		env = append(env, variable.Name+"="+value)
	}
	return env, nil
}

func (r *Runner) valueFrom(ctx context.Context, c *container, from *corev1.EnvVarSource) (string, error) {
	switch {
	case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
		return strconv.FormatInt(c.Resources.Limits.Memory().Value(), 10), nil
	case from.SecretKeyRef != nil:
		secret, err := r.opts.Client.CoreV1().Secrets(c.pod.Namespace).Get(ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return string(secret.Data[from.SecretKeyRef.Key]), nil
	case from.FieldRef == nil:
		return "", errors.New("only values, fields of the pod, keys of Secrets and limits.memory are supported here")
	}
	switch from.FieldRef.FieldPath {
	case "spec.nodeName":
		return c.pod.Spec.NodeName, nil
	case "metadata.name":
		return c.pod.Name, nil
	case "metadata.namespace":
		return c.pod.Namespace, nil
	default:
		return "", fmt.Errorf("the field %s is not supported here", from.FieldRef.FieldPath)
	}
}

func (c *container) terminationLog() string { return filepath.Join(c.dir, "termination-log") }

// terminationMessage is what a kubelet puts into the pod's status: the termination log or, after a failure and if the container says so,
// the end of the log.
func (c *container) terminationMessage(code int, log *os.File) (string, error) {
	written, err := os.ReadFile(c.terminationLog())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the termination log: %w", err)
	}
	if len(written) > 0 || code == 0 || c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return string(written), nil
	}
	output, err := os.ReadFile(log.Name())
	if err != nil {
		return "", fmt.Errorf("read the log: %w", err)
	}
	return string(output[max(0, len(output)-messageLimit):]), nil
}
