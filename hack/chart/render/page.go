package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// renderPage returns docs/reference/chart-values.md.
func renderPage(values []value) ([]byte, error) {
	var page strings.Builder
	page.WriteString(`# Values of the chart

<!-- Generated from charts/cloud-controller-manager/values.yaml by make generate. -->

Helm rejects unknown values, and values of the wrong type. It also rejects invalid combinations when it renders the chart; the error names
the accepted values.

| value | default | meaning |
| --- | --- | --- |
`)
	err := rows(&page, values, "")
	return []byte(page.String()), err
}

func rows(page *strings.Builder, values []value, path string) error {
	for _, v := range values {
		name := path + v.Name
		text := v.Description
		if enum, ok := v.Rules["enum"].([]any); ok && !named(enum, text) {
			text += fmt.Sprintf(" One of %s.", choices(enum))
		}
		standard := ""
		if v.Children == nil {
			encoded, err := json.Marshal(v.Default)
			if err != nil {
				return err
			}
			standard = "`" + string(encoded) + "`"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", name, standard, strings.ReplaceAll(text, "|", `\|`))
		if err := rows(page, v.Children, name+"."); err != nil {
			return err
		}
	}
	return nil
}

// named says that a text has all of the values but the empty one, which is the default.
func named(values []any, text string) bool {
	return !slices.ContainsFunc(values, func(v any) bool { return v != "" && !strings.Contains(text, fmt.Sprintf("%q", v)) })
}

func choices(values []any) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = fmt.Sprintf("`%q`", v)
	}
	return strings.Join(names, ", ")
}
