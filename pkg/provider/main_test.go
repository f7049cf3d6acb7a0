package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

// ignoreEmptyLists takes nil and empty lists for the same: no code tells them apart.
var ignoreEmptyLists = cmp.Options{cmpopts.EquateEmpty()}

func TestMain(m *testing.M) {
	// The fake API server panics ("channel full") when an informer falls behind by more events than this, by default 100.
	// With many objects that change at the same moment of a bubble, a busy machine is enough for that.
	watch.DefaultChanSize = 1 << 13
	testkube.ErrorsDoNotWait()
	goleak.VerifyTestMain(m)
}
