package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// kubectlEnv is the environment in which "kubectl" is the one in BinDir, works on the sandbox and keeps its caches in the demo's directory.
func (s *story) kubectlEnv() ([]string, error) {
	bin, err := filepath.Abs(s.BinDir)
	if err != nil {
		return nil, fmt.Errorf("find kubectl: %w", err)
	}
	return []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"KUBECONFIG=" + s.cluster.Kubeconfig(),
		"KUBECACHEDIR=" + s.path("kubectl-cache"),
	}, nil
}

// runKubectl runs kubectl and returns what it prints.
func (s *story) runKubectl(ctx context.Context, input []byte, args ...string) (string, error) {
	environment, err := s.kubectlEnv()
	if err != nil {
		return "", err
	}
	return runProgram(ctx, filepath.Join(s.BinDir, "kubectl"), args, environment, input)
}
