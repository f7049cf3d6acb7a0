package slb

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

func TestMain(m *testing.M) {
	// The fake API server panics ("channel full") when an informer falls behind by more events than this, by default 100.
	// With many objects that change at the same moment of a bubble, a busy machine is enough for that.
	watch.DefaultChanSize = 1 << 13
	testkube.ErrorsDoNotWait()
	goleak.VerifyTestMain(&closing{m})
}

// closing ends the connections that the shared transport keeps; they are no leak of this package.
type closing struct{ m *testing.M }

func (c *closing) Run() int {
	defer http.DefaultClient.CloseIdleConnections()
	return c.m.Run()
}
