package alicloud

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// TestCodesAreFacts: each code that decides what the manager does is a fact of the emulator, and so is checked by a scenario of package
// conformance, which has one for every such fact.
func TestCodesAreFacts(t *testing.T) {
	t.Parallel()
	known := sets.New[string]()
	for _, f := range facts.All() {
		if f.Code != "" && f.Flippable() {
			known.Insert(strings.ToLower(f.Code))
		}
		// Items of a batch have codes of their own, in an answer that is a success.
		for word := range strings.FieldsSeq(f.Statement) {
			if strings.HasPrefix(word, "VPC_") {
				known.Insert(strings.ToLower(word))
			}
		}
	}
	for _, table := range []sets.Set[string]{
		signatureCodes, authCodes, staleKeyCodes, forbiddenCodes, notFoundCodes, busyCodes, quotaCodes, duplicateCodes, ambiguousCodes,
		nlbNotFoundCodes, nlbBusyCodes, nlbDuplicateCodes, nlbAmbiguousCodes, badServerCodes,
	} {
		for code := range table {
			if !known.Has(strings.ToLower(code)) {
				t.Errorf("%s is no fact", code)
			}
		}
	}
}
