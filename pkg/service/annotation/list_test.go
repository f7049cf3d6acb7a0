package annotation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestLongListsAreRefused: what is applied of a list is remembered in the status of the Service. One that is too long counts as invalid,
// and is reported once.
func TestLongListsAreRefused(t *testing.T) {
	t.Parallel()
	list := func(n int) string {
		items := make([]string, 0, n)
		for i := range n {
			items = append(items, fmt.Sprintf("rsp-7s234miwpk5n2w4u5q%03d:%d", i, 30000+i))
		}
		return strings.Join(items, ",")
	}
	for n, refused := range map[int]bool{250: false, 300: true} {
		params, problems := Parse(map[string]string{VGroupPort.Key(): list(n), LoadBalancerID.Key(): "lb-1"})
		if params.Refused(VGroupPort) != refused || refused != (len(problems) == 1 && problems[0].Reason == problem.ReasonInvalidAnnotation &&
			strings.Contains(problems[0].Message, "at most 8 kB")) {
			t.Errorf("%d items: refused %v, problems %v", n, params.Refused(VGroupPort), problems)
		}
	}
}
