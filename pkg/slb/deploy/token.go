package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Token makes the token of a creation. A repeated attempt has the same one and finds the CLB that the first made.
// The attributes are part of it because the cloud refuses a token that comes back with others; lost is, because with the
// token of a CLB that is gone the cloud would answer with that.
func Token(uid types.UID, lost string, lb alicloud.LoadBalancer) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%+v", uid, lost, lb))
	return hex.EncodeToString(sum[:])[:tokenLength]
}

// tokenLength: the API takes at most 64 ASCII characters.
const tokenLength = 64
