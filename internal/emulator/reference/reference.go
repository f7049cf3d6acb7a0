// Package reference writes the generated parts of docs/reference/emulator.md and emulator-tables/: the tables of actions, facts and quotas,
// from the tables that the emulator itself works by.
//
// It writes tables only. What surrounds them on the page is written by hand.
package reference

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Actions writes a table of actions for every product.
func Actions(w io.Writer, table *api.Table) error {
	for i, p := range table.Products() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "### %s, version %s\n\n| action | kind | parameters |\n| --- | --- | --- |\n", p.Name, p.Version)
		actions := slices.SortedFunc(slices.Values(p.Actions), func(a, b api.Action) int { return strings.Compare(a.Name, b.Name) })
		for _, a := range actions {
			if _, err := fmt.Fprintf(w, "| %s | %s | %s |\n", a.Name, kind(a), params(a.Params)); err != nil {
				return fmt.Errorf("write the table of actions: %w", err)
			}
		}
	}
	return nil
}

// kind is read or write, with what is special about the action.
func kind(a api.Action) string {
	switch {
	case a.Unsigned:
		return string(a.Kind) + ", unsigned"
	case a.Unrestricted:
		return string(a.Kind) + ", needs no permission"
	case a.DeniedIsEmpty:
		return string(a.Kind) + ", empty if denied"
	default:
		return string(a.Kind)
	}
}

// params writes the names of parameters; required ones are bold. What values they take is in the errors of the emulator and in the vendor's
// pages.
func params(rules []api.Param) string {
	texts := make([]string, 0, len(rules))
	for i := range rules {
		text := "`" + rules[i].Name + "`"
		if rules[i].Required {
			text = "**" + text + "**"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// Quotas writes the limits of both presets, by the names that the configuration uses.
func Quotas(w io.Writer) error {
	published, observed := named(cloud.Published()), named(cloud.Observed())
	fmt.Fprint(w, "| `quotas` field | `published` | `observed` |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(published)) {
		if _, err := fmt.Fprintf(w, "| `%s` | %s | %s |\n", name, published[name], observed[name]); err != nil {
			return fmt.Errorf("write the table of quotas: %w", err)
		}
	}
	return nil
}

// named are limits by their names in the configuration file.
func named(l cloud.Limits) map[string]string {
	names, values := map[string]string{}, reflect.ValueOf(l)
	for i := range values.NumField() {
		name, _, _ := strings.Cut(values.Type().Field(i).Tag.Get("json"), ",")
		if names[name] = fmt.Sprint(values.Field(i)); values.Field(i).IsZero() {
			names[name] = "none"
		}
	}
	return names
}
