package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cluster is what a client needs of the cluster.
type cluster struct {
	// dir is the sandbox's directory.
	dir     string
	kubectl string
	// server is the URL of the API server in the machines' network, emulator that of the cloud on this host.
	server, emulator string
	// namespace is the network of a client in the internet: from there, load balancers are seen as users see them. inside is that of a
	// client in the VPC.
	namespace, inside string
}

func (c cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// find finds out where the API server is for machines, where the cloud is, and where the internet's client is.
func (c *cluster) find(ctx context.Context) error {
	server, err := c.run(ctx, "", "get", "endpointslice", "kubernetes", "-o", "jsonpath={.endpoints[0].addresses[0]}:{.ports[0].port}")
	if err != nil {
		return err
	}
	c.server = "https://" + server
	url, err := os.ReadFile(filepath.Join(c.dir, "emulator"))
	if err != nil {
		return err
	}
	c.emulator = strings.TrimSpace(string(url))
	if c.namespace, err = get(ctx, c.emulator+"/_sandbox/namespace?of=internet-client"); err != nil {
		return err
	}
	c.inside, err = get(ctx, c.emulator+"/_sandbox/namespace?of=vpc-client")
	return err
}

// get returns what a URL of the sandbox answers.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, response.Status, answer)
	}
	return strings.TrimSpace(string(answer)), err
}

// run runs kubectl as the administrator and returns what it prints.
func (c *cluster) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.kubectl, append([]string{"--kubeconfig", c.kubeconfig()}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
