package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

func TestConfigMapSource(t *testing.T) {
	t.Parallel()
	url := startECS(t)
	const config = `{"Global":{"accessKeyID":"ZW11bGF0b3I=","accessKeySecret":"ZW11bGF0b3Itc2VjcmV0","region":"cn-hangzhou","vpcid":"vpc-emulator"}}`
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "cloud-config", errors.New("no role"))
	busy := apierrors.NewServiceUnavailable("starting")
	for name, test := range map[string]struct {
		errs     []error // of the first reads
		text     string
		want     string // provider ID
		wantErr  error
		wantText string
	}{
		"can be read":     {text: config, want: "cn-hangzhou.i-1"},
		"may not be read": {errs: []error{forbidden, forbidden}, wantErr: initor.ErrNotUsable, wantText: "forbidden"},
		"busy at first":   {errs: []error{busy}, text: config, want: "cn-hangzhou.i-1"},
		"without a VPC":   {text: strings.Replace(config, "vpcid", "other", 1), wantErr: initor.ErrIncomplete, wantText: "Global.vpcid"},
		"without the key": {wantErr: initor.ErrIncomplete, wantText: "cloud-config.conf"},
		"with a misspelled field": {
			text: strings.Replace(config, "vpcid", "vpcidd", 1), wantErr: initor.ErrIncomplete,
			wantText: "only the metadata service is used; unknown fields: Global.vpcidd (did you mean vpcid?)",
		},
		"with a wrong type": {
			text:    strings.Replace(config, `"region"`, `"backendSubset":[25],"region"`, 1),
			wantErr: initor.ErrIncomplete, wantText: `Global.backendSubset: a list, accepted: "auto", "off"`,
		},
		"with a bad value": {text: strings.Replace(config, "ZW11bGF0b3Itc2VjcmV0", "plain-secret", 1), wantErr: initor.ErrIncomplete,
			wantText: "accessKeySecret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gets := 0
			source, err := newConfigMapSource(func(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
				if gets++; gets <= len(test.errs) {
					return nil, test.errs[gets-1]
				}
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{cloudConfigKey: test.text},
				}, nil
			}, defaultConfigMap, provider.Environment{Endpoints: provider.Endpoints{"ecs": url}, PlainHTTP: true})
			if err != nil {
				t.Fatal(err)
			}
			n := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.11"}}}}
			_, _ = source.Identify(t.Context(), n)
			id, err := source.Identify(t.Context(), n)
			if !errors.Is(err, test.wantErr) || (test.want != "" && id.String() != test.want) {
				t.Errorf("Identify = %v, %v, want %q, %v", id, err, test.want, test.wantErr)
			}
			if err != nil && (!strings.Contains(err.Error(), test.wantText) || strings.Contains(err.Error(), "plain-secret")) {
				t.Errorf("error %q does not hold %q, or holds the secret", err, test.wantText)
			}
		})
	}
}

// startECS serves an emulator with the instance i-1 at 10.1.0.11.
func startECS(t *testing.T) string {
	t.Helper()
	emu, err := emulator.New(emulator.Options{Config: cloud.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := emu.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := emu.PutInstance("i-1", emulator.InstanceSpec{PrivateIP: "10.1.0.11"}); err != nil {
		t.Fatal(err)
	}
	return server.URL
}
