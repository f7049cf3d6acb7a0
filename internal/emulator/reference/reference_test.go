package reference_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/reference"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
)

const page = "../../../docs/reference/emulator.md"

func TestPageIsFresh(t *testing.T) {
	t.Parallel()
	e, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var actions, quotas strings.Builder
	if err := reference.Actions(&actions, e.Actions()); err != nil {
		t.Fatal(err)
	}
	if err := reference.Quotas(&quotas); err != nil {
		t.Fatal(err)
	}
	golden.FreshParts(t, page, map[string]string{"actions": actions.String(), "quotas": quotas.String()})
}

// TestPageNamesSwitches: the table of switches is written by hand.
func TestPageNamesSwitches(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cloud.Switches]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !strings.Contains(string(have), "\n| `"+name+"` |") {
			t.Errorf("%s does not describe the switch %s", page, name)
		}
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	table := api.NewTable(api.Product{Name: "x", Version: "1", Actions: []api.Action{
		{Name: "Set", Kind: api.Write, Params: []api.Param{
			api.Str("Id", api.Required), api.Num("Port", 1, 9, api.Also(-1)), api.Num("Page", 1, 0), api.Flag("Force"), api.Str("Mode", api.OneOf("a", "b")),
			api.ObjectsOf("Tag", 20, api.Str("Key", api.Len(1, 64))), api.JSONList("Ids", 100),
		}},
		{Name: "Get", Kind: api.Read, DeniedIsEmpty: true},
	}})
	var got strings.Builder
	if err := reference.Actions(&got, table); err != nil {
		t.Fatal(err)
	}
	want := "### x, version 1\n\n| action | kind | parameters |\n| --- | --- | --- |\n| Get | read, empty if denied |  |\n" +
		"| Set | write | **`Id`**, `Port` 1-9 or -1, `Page` from 1, `Force` true/false, `Mode` a/b, " +
		"`Tag` list of objects (`Key` 1-64 characters), at most 20, `Ids` JSON array of strings, at most 100 |\n"
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Error(d)
	}
}
