package nlb

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

func TestMain(m *testing.M) {
	testkube.RoomForWatchers()
	testkube.ErrorsDoNotWait()
	goleak.VerifyTestMain(m)
}
