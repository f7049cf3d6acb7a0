package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

// ignoreEmptyLists takes nil and empty lists for the same: no code tells them apart.
var ignoreEmptyLists = cmp.Options{cmpopts.EquateEmpty()}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
