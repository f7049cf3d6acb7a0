package provider

import (
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
)

// cloudServer is the emulated cloud with its address.
type cloudServer struct{ *emulatortest.Cloud }

func startCloud(t *testing.T) cloudServer {
	t.Helper()
	return cloudServer{emulatortest.New(t, emulator.Options{})}
}

// environment points everything at the emulator; the metadata service is that of instance, "" for none.
func (s cloudServer) environment(instance string) Environment {
	return environmentAt(s.URL(), instance)
}

func environmentAt(url, instance string) Environment {
	host := strings.TrimPrefix(url, "http://")
	variables := map[string]string{
		"SLB_ENDPOINT": host, "NLB_ENDPOINT": host, "VPC_ENDPOINT": host, "ECS_ENDPOINT": url, "QUOTAS_ENDPOINT": host, "STS_ENDPOINT": host,
		"ALICLOUD_CLIENT_SCHEME": "HTTP", "METADATA_ENDPOINT": "http://127.0.0.1:0",
	}
	if instance != "" {
		variables["METADATA_ENDPOINT"] = url + "/metadata/" + instance
	}
	return EnvironmentFrom(func(name string) string { return variables[name] })
}

var keys = Config{AccessKeyID: "emulator", AccessKeySecret: "emulator-secret", Region: "cn-hangzhou"}

func kubeSystem() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "0f2c3d4e-0000-4000-8000-00000000abcd"}}
}

func connected(t *testing.T, config Config, env Environment, objects ...runtime.Object) (*Cloud, error) {
	t.Helper()
	cloud := New(config, env)
	return cloud, cloud.Connect(t.Context(), allowing(true, objects...))
}

// allowing returns an API server that grants everything, or nothing but what needs no grant.
func allowing(everything bool, objects ...runtime.Object) *fake.Clientset {
	kube := fake.NewClientset(append(objects, kubeSystem())...)
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: everything}}, nil
	})
	return kube
}

func TestConnectByConfig(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	config := keys
	config.VPCID, config.VSwitchIDs, config.ClusterID = "vpc-emulator", []string{"vsw-b"}, "c1"
	cloud, err := connected(t, config, server.environment(""))
	if err != nil {
		t.Fatal(err)
	}
	checkPlace(t, cloud, "vpc-emulator", []string{"vsw-b"})
	if cloud.clusterID != "c1" {
		t.Errorf("cluster id %q, want the configured one", cloud.clusterID)
	}
	if got := server.Count(0); got != 1 {
		t.Errorf("%d calls, want 1", got)
	}
}

func TestConnectByMetadata(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	server.Put("i-1", `{"VSwitchId": "vsw-b"}`)
	cloud, err := connected(t, keys, server.environment("i-1"))
	if err != nil {
		t.Fatal(err)
	}
	checkPlace(t, cloud, "vpc-emulator", []string{"vsw-b"})
	if want := "c0f2c3d4e00004000800000000000abcd"; cloud.clusterID != want {
		t.Errorf("cluster id %q, want %q from the UID of kube-system", cloud.clusterID, want)
	}
}

func TestConnectByMetadataAlone(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	server.Put("i-1", `{"RamRoleName": "emulator-role"}`)
	cloud, err := connected(t, Config{}, server.environment("i-1"))
	if err != nil {
		t.Fatal(err)
	}
	checkPlace(t, cloud, "vpc-emulator", []string{"vsw-a"})
}

func TestConnectByNodes(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	server.Put("i-1", `{"VSwitchId": "vsw-b"}`)
	server.Put("i-2", `{"VSwitchId": "vsw-a", "PrivateIpAddress": "10.1.7.7"}`)
	byID := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{ProviderID: "cn-hangzhou.i-1"}}
	byAddress := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.7.7"}},
	}}
	tests := map[string]struct {
		node *corev1.Node
		want []string
	}{
		"provider ID": {byID, []string{"vsw-b"}},
		"address":     {byAddress, []string{"vsw-a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud, err := connected(t, keys, server.environment(""), test.node)
			if err != nil {
				t.Fatal(err)
			}
			checkPlace(t, cloud, "vpc-emulator", test.want)
		})
	}
}

func TestConnectElsewhereUsesAnyVSwitchOfTheVPC(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	config := keys
	config.VPCID = "vpc-emulator"
	cloud, err := connected(t, config, server.environment(""))
	if err != nil {
		t.Fatal(err)
	}
	if len(cloud.place.vSwitchIDs) != 2 {
		t.Errorf("vSwitches %v, want the two of the VPC", cloud.place.vSwitchIDs)
	}
}

func TestConnectRefuses(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	edit := func(change func(*Config)) Config {
		config := keys
		config.VPCID, config.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
		change(&config)
		return config
	}
	tests := map[string]struct {
		config Config
		want   []string
	}{
		"unknown VPC":    {edit(func(c *Config) { c.VPCID = "vpc-none" }), []string{`Global.vpcid: "vpc-none"`, "vpc-none"}},
		"unknown region": {edit(func(c *Config) { c.Region = "cn-nowhere" }), []string{`Global.region: "cn-nowhere"`}},
		"unknown key":    {edit(func(c *Config) { c.AccessKeyID = "x" }), []string{"Global.accessKeyID", "InvalidAccessKeyId.NotFound"}},
		"no VPC at all":  {keys, []string{"Global.vpcid: not set", "metadata service", "0 nodes"}},
		"no region":      {Config{}, []string{"Global.region: not set"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := connected(t, test.config, server.environment(""))
			if err == nil {
				t.Fatal("connected")
			}
			for _, want := range append(test.want, "accepted: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// TestConnectUnderPublishedRole has no right to Namespaces, as the vendor's published role.
func TestConnectUnderPublishedRole(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	config := keys
	config.VPCID, config.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
	cloud := New(config, server.environment(""))
	kube := allowing(false)
	kube.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "kube-system", nil)
	})
	if err := cloud.Connect(t.Context(), kube); err != nil {
		t.Fatal(err)
	}
	if cloud.clusterID != officialClusterID {
		t.Errorf("cluster id %q, want %q", cloud.clusterID, officialClusterID)
	}
	cloud.ctx, cloud.kube = t.Context(), kube
	cloud.SetInformers(informers.NewSharedInformerFactory(kube, 0))
	if options := cloud.engines.serviceOptions; options.EndpointSlices != nil || options.Endpoints == nil {
		t.Error("backend servers are to be read from EndpointSlices, which the role may not list")
	}
}

func checkPlace(t *testing.T, cloud *Cloud, vpcID string, vSwitches []string) {
	t.Helper()
	if cloud.place.vpcID != vpcID {
		t.Errorf("VPC %q, want %q", cloud.place.vpcID, vpcID)
	}
	if diff := cmp.Diff(vSwitches, cloud.place.vSwitchIDs); diff != "" {
		t.Errorf("vSwitches (-want +got):\n%s", diff)
	}
}

// unsignedToken is what the built-in configuration of the emulator, which knows no keys, accepts as a service account token.
func unsignedToken(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodRS256, &jwt.RegisteredClaims{
		Subject: "system:serviceaccount:kube-system:cloud-controller-manager", Audience: jwt.ClaimStrings{"sts.aliyuncs.com"},
		ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)),
	}).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestBoundsReachWhatTheyBound: a flag that is read and goes nowhere is worse than none.
func TestBoundsReachWhatTheyBound(t *testing.T) {
	t.Parallel()
	config := keys
	config.VPCID, config.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
	server := startCloud(t)
	for given, want := range map[int]int{0: 40, 12: 12, 1000: 40} {
		cloud := New(config, server.environment(""))
		cloud.Configure(Settings{BackendBatch: given, RouteBatch: 7, NodeEventWait: 3 * time.Second})
		kube := allowing(true)
		if err := cloud.Connect(t.Context(), kube); err != nil {
			t.Fatal(err)
		}
		cloud.ctx, cloud.kube = t.Context(), kube
		cloud.SetInformers(informers.NewSharedInformerFactory(kube, 0))
		if got := cloud.client.BackendsPerCall(); got != want {
			t.Errorf("%d backend servers per call where %d are asked for, want %d", got, given, want)
		}
		if routes, wait := cloud.engines.routeOptions.BatchSize, cloud.engines.serviceOptions.NodeDelay; routes != 7 || wait != 3*time.Second {
			t.Errorf("%d routes per call and %s of wait, want those of the settings", routes, wait)
		}
	}
}
