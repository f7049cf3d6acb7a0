package podprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// mount writes the container's ConfigMaps and Secrets as files.
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
			return s.Data, nil
		}
	}
	return nil, nil
}

// arguments are the container's, with the paths of its files where they really are.
func (c *container) arguments() []string {
	args := make([]string, 0, len(c.Args))
	for _, arg := range c.Args {
		for path, dir := range c.mounts {
			arg = strings.ReplaceAll(arg, path+"/", dir+"/")
		}
		args = append(args, arg)
	}
	return args
}

// environment returns the container's variables. The termination log is a file of the container's directory.
func (c *container) environment() ([]string, error) {
	var env []string
	for _, variable := range c.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			var err error
			if value, err = c.fieldValue(variable.ValueFrom.FieldRef); err != nil {
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

func (c *container) fieldValue(field *corev1.ObjectFieldSelector) (string, error) {
	if field == nil {
		return "", errors.New("only values and fields of the pod are supported here")
	}
	switch field.FieldPath {
	case "spec.nodeName":
		return c.pod.Spec.NodeName, nil
	case "metadata.name":
		return c.pod.Name, nil
	case "metadata.namespace":
		return c.pod.Namespace, nil
	default:
		return "", fmt.Errorf("the field %s is not supported here", field.FieldPath)
	}
}

func (c *container) terminationLog() string { return filepath.Join(c.dir, "termination-log") }

// terminationMessage is what a kubelet puts into the pod's status: the termination log or, after a failure and if the container says so,
// the end of the log.
func (c *container) terminationMessage(code int, output []byte) (string, error) {
	written, err := os.ReadFile(c.terminationLog())
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("read the termination log: %w", err)
	case len(written) == 0 && code != 0 && c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError:
		return string(output[max(0, len(output)-messageLimit):]), nil
	default:
		return string(written), nil
	}
}
