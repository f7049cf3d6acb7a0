package nlb

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.RoomForWatchers()
	testkit.ErrorsDoNotWait()
	goleak.VerifyTestMain(m)
}
