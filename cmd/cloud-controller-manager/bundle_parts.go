package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/cloud-provider/app/config"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/buildinfo"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/support"
)

// metricsTimeout bounds the read of the metrics of one pod: from a workstation, pods often cannot be reached.
const metricsTimeout = 5 * time.Second

// errNoCertificate says why no metrics are read.
var errNoCertificate = errors.New("metrics need a kubeconfig with a client certificate: the certificate of the manager proves nothing, so no token is sent to it")

// bundle makes one support bundle.
type bundle struct {
	bundleFlags
	completed *config.CompletedConfig
	start     starter
	port      int
	set       string // the flags
	made      time.Time
	secrets   []string
}

// namedReport is the output of a command, or why there is none.
type namedReport struct {
	name   string
	report report
	err    error
}

// write makes the reports first: they find out which keys are in use, which are then taken out of everything.
func (b *bundle) write(ctx context.Context, to io.Writer) (missing []string, err error) {
	reports := b.reports(ctx)
	file := b.completed.ComponentConfig.KubeCloudShared.CloudProvider.CloudConfigFile
	b.secrets = append(b.secrets, tokensOf(b.completed.Kubeconfig, b.completed.ComponentConfig.Generic.ClientConnection.Kubeconfig)...)
	archive := support.NewArchive(to, support.NewRedactor(b.secrets...), b.name(), b.made)
	archive.Text("version.txt", "version of the program that made this", buildinfo.Line("cloud-controller-manager", buildinfo.Version())+"\n")
	archive.Text("flags.txt", "flags that were set", b.set)
	if text, err := redactedFile(file); err != nil {
		archive.Missing("cloud-config.yaml", err)
	} else {
		archive.Text("cloud-config.yaml", "the cloud-config without keys", text)
	}
	for _, r := range reports {
		if r.err != nil {
			archive.Missing(r.name, r.err)
			continue
		}
		archive.Text(r.name+".txt", "output of the command "+r.name, r.report.String())
		archive.JSON(r.name+".json", "the same as JSON", r.report)
	}
	support.Cluster{
		Kube: b.completed.Client, Namespace: b.namespace, Selector: b.selector, Components: provider.EventSources(), Write: alicloud.WriteMessage,
		Prefixes: []string{"service.beta.kubernetes.io/", "service.k8s.alibaba/", "service.kubernetes.io/", "alibabacloud.com/"},
		Metrics:  b.metrics,
	}.Collect(ctx, archive)
	return archive.Close()
}

// reports returns those of doctor, plan and orphans, as far as they can be made, and notes the keys that they use.
func (b *bundle) reports(ctx context.Context) []namedReport {
	examined, cloud, err := examineAs(ctx, b.completed, b.start)
	b.learn(ctx, cloud)
	reports := []namedReport{{"doctor", examined, err}}
	cloud, err = readCluster(ctx, b.completed, b.start)
	b.learn(ctx, cloud)
	if err != nil {
		return append(reports, namedReport{"plan", nil, err}, namedReport{"orphans", nil, err})
	}
	planned, err := cloud.Plan(ctx)
	reports = append(reports, namedReport{"plan", planned, err})
	orphans, err := cloud.Orphans(ctx, true)
	return append(reports, namedReport{"orphans", orphans, err})
}

func (b *bundle) learn(ctx context.Context, cloud *provider.Cloud) {
	if cloud != nil {
		b.secrets = append(b.secrets, cloud.Secrets(ctx)...)
	}
}

// tokensOf returns what this program shows to the API server, and everything of that kind in the kubeconfig, used or not.
func tokensOf(used *rest.Config, kubeconfig string) []string {
	secrets, files := []string{used.BearerToken, used.Password}, []string{used.BearerTokenFile}
	if loaded, err := clientcmd.LoadFromFile(kubeconfig); err == nil {
		for _, user := range loaded.AuthInfos {
			secrets, files = append(secrets, user.Token, user.Password), append(files, user.TokenFile)
		}
	}
	for _, file := range files {
		if token, err := os.ReadFile(file); err == nil {
			secrets = append(secrets, strings.TrimSpace(string(token)))
		}
	}
	return secrets
}

func redactedFile(path string) (string, error) {
	if path == "" {
		return "", errors.New("--cloud-config is not set")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return provider.RedactConfig(text)
}

// metrics reads the metrics of the manager at an address, with the client certificate of the kubeconfig.
func (b *bundle) metrics(ctx context.Context, address string) (string, error) {
	identity := b.completed.Kubeconfig
	if len(identity.CertData) == 0 && identity.CertFile == "" {
		return "", errNoCertificate
	}
	settings, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		Insecure: true, CertFile: identity.CertFile, KeyFile: identity.KeyFile, CertData: identity.CertData, KeyData: identity.KeyData,
	}})
	if err != nil {
		return "", err
	}
	settings.MinVersion = tls.VersionTLS12
	client := http.Client{Timeout: metricsTimeout, Transport: &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(address, strconv.Itoa(b.port))+"/metrics", nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s", answer.Status)
	}
	return string(text), err
}
