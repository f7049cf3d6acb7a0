package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed manifests
var manifests embed.FS

// kubectlEnv is the environment in which "kubectl" is the sandbox's own, works on the sandbox and keeps its caches in the demo's
// directory.
func (s *story) kubectlEnv() ([]string, error) {
	tools := s.path("tools")
	if err := os.MkdirAll(tools, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for kubectl: %w", err)
	}
	if err := os.Symlink(s.Kubectl, filepath.Join(tools, "kubectl")); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("put kubectl on the path: %w", err)
	}
	return []string{
		"PATH=" + tools + string(os.PathListSeparator) + os.Getenv("PATH"),
		"KUBECONFIG=" + s.cluster.Kubeconfig(),
		"KUBECACHEDIR=" + s.path("kubectl-cache"),
	}, nil
}

// apply applies one of the demo's manifests with kubectl.
func (s *story) apply(ctx context.Context, name string) error {
	content, err := readFile(manifests, "manifests/"+name)
	if err != nil {
		return err
	}
	_, err = s.runKubectl(ctx, content, "apply", "-f", "-")
	return err
}

// runKubectl runs kubectl and returns what it prints.
func (s *story) runKubectl(ctx context.Context, input []byte, args ...string) (string, error) {
	environment, err := s.kubectlEnv()
	if err != nil {
		return "", err
	}
	return runProgram(ctx, filepath.Join(s.path("tools"), "kubectl"), args, environment, input)
}

func readFile(from fs.FS, name string) ([]byte, error) {
	content, err := fs.ReadFile(from, name)
	if err != nil {
		return nil, fmt.Errorf("read an embedded file: %w", err)
	}
	return content, nil
}
