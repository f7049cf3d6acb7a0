package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A value is one of values.yaml with what its comment says.
type value struct {
	Name        string
	Description string
	// Type is that of JSON schema, as the default has it; Default is nil for objects with Children.
	Type    string
	Default any
	// Rules are the JSON schema keywords of the comment's @schema line.
	Rules    map[string]any
	Children []value
}

// schemaLine begins the line of a comment that holds JSON schema keywords.
const schemaLine = "@schema "

// parseValues reads values.yaml. Every value must have a comment; what lies below a free map (additionalProperties) is its default.
func parseValues(text []byte) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("not a mapping")
	}
	return children(document.Content[0], "")
}

func children(mapping *yaml.Node, path string) ([]value, error) {
	var values []value
	for i := 0; i < len(mapping.Content); i += 2 {
		v, err := newValue(mapping.Content[i], mapping.Content[i+1], path)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func newValue(key, node *yaml.Node, parent string) (value, error) {
	v := value{Name: key.Value}
	path := strings.TrimPrefix(parent+"."+v.Name, ".")
	comment := key.HeadComment
	if _, last, found := strings.Cut(comment, "\n\n"); found { // a paragraph about the file stands above the first value
		comment = last
	}
	var err error
	if v.Description, v.Rules, err = readComment(comment); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	if v.Description == "" {
		return v, fmt.Errorf("%s: has no comment, which is its description", path)
	}
	types := map[string]string{"!!str": "string", "!!bool": "boolean", "!!int": "integer", "!!seq": "array", "!!map": "object"}
	if v.Type = types[node.Tag]; v.Type == "" {
		return v, fmt.Errorf("%s: has a default of type %s; accepted: string, boolean, integer, sequence, mapping", path, node.Tag)
	}
	if _, free := v.Rules["additionalProperties"]; v.Type == "object" && (!free || hasComments(node)) {
		v.Children, err = children(node, path)
		return v, err
	}
	return v, node.Decode(&v.Default)
}

func hasComments(mapping *yaml.Node) bool {
	return len(mapping.Content) > 0 && mapping.Content[0].HeadComment != ""
}

// readComment splits a comment into its sentences and its @schema line.
func readComment(comment string) (description string, rules map[string]any, err error) {
	var words []string
	for line := range strings.SplitSeq(comment, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		keywords, found := strings.CutPrefix(line, schemaLine)
		if !found {
			words = append(words, line)
		} else if err := json.Unmarshal([]byte(keywords), &rules); err != nil {
			return "", nil, fmt.Errorf("%s%s: %w", schemaLine, keywords, err)
		}
	}
	return strings.TrimSpace(strings.Join(words, " ")), rules, nil
}
