package render

import (
	"bytes"
	"encoding/json"
	"maps"
)

// renderSchema returns values.schema.json, with which Helm checks what a user sets.
func renderSchema(values []value) ([]byte, error) {
	schema := object(values)
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	schema["title"] = "Values of the chart cloud-controller-manager"
	schema["$comment"] = "Generated from values.yaml by make generate."
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(schema)
	return out.Bytes(), err
}

func object(values []value) map[string]any {
	properties := map[string]any{}
	for _, v := range values {
		properties[v.Name] = v.schema()
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

func (v value) schema() map[string]any {
	schema := map[string]any{"type": v.Type}
	if v.Children != nil {
		schema = object(v.Children)
	} else {
		schema["default"] = v.Default
	}
	schema["description"] = v.Description
	maps.Copy(schema, v.Rules)
	return schema
}
