package conformance

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// at returns the value at a path such as "Instances.Instance.0.Status". "#" is the length of a list, "?" whether there is a value.
func at(v any, path string) any {
	if path == "" {
		return v
	}
	key, rest, _ := strings.Cut(path, ".")
	switch v := v.(type) {
	case map[string]any:
		next, ok := v[key]
		if rest == "?" {
			return ok
		}
		return at(next, rest)
	case []any:
		if key == "#" {
			return float64(len(v))
		}
		if i, err := strconv.Atoi(key); err == nil && i < len(v) {
			return at(v[i], rest)
		}
	}
	return nil
}

func last(path string) string {
	parts := strings.Split(path, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		if _, err := strconv.Atoi(parts[i]); err != nil && parts[i] != "#" && parts[i] != "?" {
			return parts[i]
		}
	}
	return ""
}

// plain is a value as JSON has it.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	_ = json.Unmarshal(data, &out) // what was just encoded decodes
	return out
}

func equal(a, b any) bool { return reflect.DeepEqual(plain(a), plain(b)) }
