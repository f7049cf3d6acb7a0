package provider

import (
	"errors"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestReady: a standby is ready, a leader once its caches are filled.
func TestReady(t *testing.T) {
	t.Parallel()
	client, err := alicloud.New(alicloud.Options{Region: "cn-hangzhou", Credentials: alicloud.StaticCredentials{}})
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{}, Environment{})
	c.client = client
	if err := c.Ready(); err != nil {
		t.Errorf("a standby: %v", err)
	}
	filled := false
	c.synced.Store(&[]cache.InformerSynced{func() bool { return true }, func() bool { return filled }})
	if err := c.Ready(); !errors.Is(err, errCachesEmpty) {
		t.Errorf("a leader with an empty cache: %v, want that it is not ready", err)
	}
	filled = true
	if err := c.Ready(); err != nil {
		t.Errorf("a leader with filled caches: %v", err)
	}
}
