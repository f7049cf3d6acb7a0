package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
)

// dnsManifest is cluster DNS.
//
//go:embed dns.yaml
var dnsManifest string

// classManifest makes the Services of the specs, which have no class, Services with an NLB.
//
//go:embed class.yaml
var classManifest string

const (
	// nlbClass is the class in class.yaml.
	nlbClass = "alibabacloud.com/nlb"
	// managerImage is what the sandbox calls the image of the manager that it has built.
	managerImage = "ghcr.io/alicloud-ccm/cloud-controller-manager:sandbox"
	// dnsAddress is that of the Service in dns.yaml.
	dnsAddress = "10.96.0.10"
	// usable is how long the cluster may take until everything in it is ready.
	usable = 3 * time.Minute
)

// env is a sandbox of real machines with the manager and cluster DNS.
type env struct {
	options
	cluster

	// files is a directory for everything, the sandbox's included.
	files   string
	sandbox *exec.Cmd
	names   *names
}

// start returns when the cluster can be used. stop ends it, also after an error.
func (e *env) start(ctx context.Context) error {
	var err error
	if e.files, err = os.MkdirTemp("", "k8s-e2e-"); err != nil {
		return err
	}
	archive := filepath.Join(e.files, "images.tar")
	if err := writeImages(ctx, archive, e.buildDir); err != nil {
		return err
	}
	e.dir, e.kubectl = filepath.Join(e.files, "sandbox"), filepath.Join(e.binDir, "kubectl")
	if err := e.up(ctx, archive); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, usable)
	defer cancel()
	installs := []func(context.Context) error{e.installManager, e.find, e.serveNames, e.installDNS, e.await}
	if e.product == productNLB {
		installs = append(installs, e.installClass)
	}
	for _, install := range installs {
		if err := install(ctx); err != nil {
			return err
		}
	}
	return nil
}

// up starts the sandbox and waits for its "ready".
func (e *env) up(ctx context.Context, archive string) error {
	// It outlives ctx: specs that are interrupted clean up. stop ends it.
	e.sandbox = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(e.binDir, "sandbox"), "up", "--dir", e.dir,
		"--node-kind", "real", "--nodes", fmt.Sprint(e.nodes), "--images", archive, "--cluster-dns", dnsAddress)
	e.sandbox.Stderr = os.Stderr
	// A process group of its own: neither does the terminal's interrupt end it. But it does not outlive this process.
	e.sandbox.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	stdout, err := e.sandbox.StdoutPipe()
	if err != nil {
		return err
	}
	if err = e.sandbox.Start(); err != nil {
		e.sandbox = nil
		return fmt.Errorf("start the sandbox (make build kubectl machine makes what it needs): %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = e.sandbox.Process.Signal(syscall.SIGTERM) })() // only while it comes up
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "ready\n" {
		return fmt.Errorf("the sandbox did not come up: it says %q: %w", line, err)
	}
	return nil
}

// stop ends the sandbox and removes its files.
func (e *env) stop() error {
	var errs []error
	if e.names != nil {
		errs = append(errs, e.names.close())
	}
	if e.sandbox != nil {
		if err := e.sandbox.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
		if err := e.sandbox.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("the sandbox has ended: %w", err))
		}
	}
	if e.files != "" {
		errs = append(errs, os.RemoveAll(e.files))
	}
	return errors.Join(errs...)
}

// installManager installs the published manifest, with the image that the sandbox has.
func (e *env) installManager(ctx context.Context) error {
	_, err := e.run(ctx, "", "-n", "kube-system", "create", "configmap", "cloud-config",
		"--from-file="+filepath.Join(e.dir, "cloud-config.conf"))
	if err != nil {
		return err
	}
	manifest, err := deploy.Files.ReadFile("ccm.yaml")
	if err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(string(manifest)) {
		if at := strings.Index(line, "image: "); at >= 0 {
			line = line[:at] + "image: " + managerImage + "\n"
		}
		out.WriteString(line)
	}
	_, err = e.run(ctx, out.String(), "apply", "-f", "-")
	return err
}

func (e *env) installDNS(ctx context.Context) error {
	_, err := e.run(ctx, strings.ReplaceAll(dnsManifest, "NAMESERVER", e.names.inside), "apply", "-f", "-")
	return err
}

func (e *env) serveNames(ctx context.Context) (err error) {
	e.names, err = serveNames(ctx, &e.cluster, e.files)
	return err
}

// installClass gives each Service the class of NLBs, and waits until it does.
func (e *env) installClass(ctx context.Context) error {
	if _, err := e.run(ctx, classManifest, "apply", "-f", "-"); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		class, err := e.run(ctx, "", "create", "service", "loadbalancer", "probe", "--tcp=80", "--dry-run=server", "-o",
			"jsonpath={.spec.loadBalancerClass}")
		if err != nil || class == nlbClass {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the policy of class.yaml has no effect after %s: a Service has the class %q", usable, class)
		}
	}
}

// await waits until pods can run everywhere.
func (e *env) await(ctx context.Context) error {
	for _, args := range [][]string{
		{"-n", "kube-system", "rollout", "status", "deployment/cloud-controller-manager"},
		{"-n", "kube-system", "rollout", "status", "deployment/coredns"},
		{"wait", "nodes", "--all", "--for=jsonpath={.spec.providerID}"},
		{"wait", "nodes", "--all", "--for=condition=NetworkUnavailable=False"},
	} {
		if _, err := e.run(ctx, "", append(args, "--timeout="+usable.String())...); err != nil {
			return err
		}
	}
	return nil
}
