// Package reference writes the generated parts of docs/reference/emulator.md: the tables of actions and of quotas, from
// the tables that the emulator itself works by.
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

func params(rules []api.Param) string {
	texts := make([]string, 0, len(rules))
	for i := range rules {
		texts = append(texts, param(&rules[i]))
	}
	return strings.Join(texts, ", ")
}

// param writes a rule in a few words; required names are bold.
func param(r *api.Param) string {
	text := "`" + r.Name + "`"
	if r.Required {
		text = "**" + text + "**"
	}
	return strings.TrimRight(text+" "+rule(r), " ")
}

func rule(r *api.Param) string {
	switch r.Type {
	case api.Int:
		return numbers(r)
	case api.Bool:
		return "true/false"
	case api.String:
		switch {
		case len(r.Enum) > 0:
			return strings.Join(r.Enum, "/") + orPrefix(r.Prefix)
		case r.Max != 0:
			return fmt.Sprintf("%d-%d characters", r.Min, r.Max)
		}
		return ""
	}
	text := string(r.Type)
	if len(r.Fields) > 0 {
		text += " (" + params(r.Fields) + ")"
	}
	if r.Max != 0 {
		text += fmt.Sprintf(", at most %d", r.Max)
	}
	return text
}

func orPrefix(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " or " + prefix + "…"
}

func numbers(r *api.Param) string {
	text := fmt.Sprintf("%d-%d", r.Min, r.Max)
	if r.Max == 0 {
		text = fmt.Sprintf("from %d", r.Min)
	}
	if r.Also != 0 {
		text += fmt.Sprintf(" or %d", r.Also)
	}
	return text
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
