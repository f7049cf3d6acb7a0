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

const (
	page        = "../../../docs/reference/emulator.md"
	actionsPage = "../../../docs/reference/emulator-tables/actions.md"
)

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
	golden.FreshParts(t, page, map[string]string{"quotas": quotas.String()})
	golden.FreshParts(t, actionsPage, map[string]string{"actions": actions.String()})
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
			api.Str("Id", api.Required), api.Num("Port", 1, 9), api.ObjectsOf("Tag", 20, api.Str("Key", api.Len(1, 64))),
		}},
		{Name: "Get", Kind: api.Read, DeniedIsEmpty: true},
	}})
	var got strings.Builder
	if err := reference.Actions(&got, table); err != nil {
		t.Fatal(err)
	}
	want := "### x, version 1\n\n| action | kind | parameters |\n| --- | --- | --- |\n| Get | read, empty if denied |  |\n" +
		"| Set | write | **`Id`**, `Port`, `Tag` |\n"
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Error(d)
	}
}
