package render

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// chartKinds are the kinds of Kubernetes' own that the chart and deploy/ use, by their definitions' names in its OpenAPI document.
var chartKinds = []string{
	"io.k8s.api.core.v1.ConfigMap", "io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.Secret", "io.k8s.api.core.v1.Service",
	"io.k8s.api.core.v1.ServiceAccount",
	"io.k8s.api.apps.v1.DaemonSet", "io.k8s.api.apps.v1.Deployment", "io.k8s.api.batch.v1.Job",
	"io.k8s.api.rbac.v1.ClusterRole", "io.k8s.api.rbac.v1.ClusterRoleBinding", "io.k8s.api.rbac.v1.Role", "io.k8s.api.rbac.v1.RoleBinding",
	"io.k8s.api.policy.v1.PodDisruptionBudget", "io.k8s.api.networking.v1.NetworkPolicy",
	"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy", "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
}

// definitions are the JSON schemas of an OpenAPI document.
type definitions map[string]map[string]any

// readOpenAPI reads the document of a Kubernetes release, as its module has it, and keeps what chartKinds need, made strict.
func readOpenAPI(moduleDir string) (definitions, error) {
	text, err := os.ReadFile(filepath.Join(moduleDir, "api/openapi-spec/swagger.json"))
	if err != nil {
		return nil, err
	}
	var document struct{ Definitions definitions }
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	kept := definitions{}
	for _, kind := range chartKinds {
		if document.Definitions[kind] == nil {
			return nil, fmt.Errorf("%s: not in the document", kind)
		}
		keep(kind, document.Definitions, kept)
	}
	return kept, nil
}

// keep copies a definition and those that it refers to.
func keep(name string, from, to definitions) {
	if to[name] != nil {
		return
	}
	to[name] = tighten(from[name])
	references(to[name], func(referred string) { keep(referred, from, to) })
}

const refPrefix = "#/definitions/"

func references(node any, see func(name string)) {
	switch n := node.(type) {
	case map[string]any:
		if ref, ok := n["$ref"].(string); ok {
			see(strings.TrimPrefix(ref, refPrefix))
		}
		for _, child := range n {
			references(child, see)
		}
	case []any:
		for _, child := range n {
			references(child, see)
		}
	}
}

// tighten leaves out what only readers need, refuses unknown fields, and lets numbers stand where the API server lets them.
func tighten(definition map[string]any) map[string]any {
	strict := strip(definition).(map[string]any) //nolint:forcetypeassert // strip keeps the type
	switch {
	case definition["format"] == "int-or-string", strings.HasPrefix(fmt.Sprint(definition["description"]), "Quantity is "):
		return map[string]any{"type": []any{"string", "number"}}
	case strict["properties"] != nil && strict["additionalProperties"] == nil:
		strict["additionalProperties"] = false
	}
	return strict
}

func strip(node any) any {
	switch n := node.(type) {
	case map[string]any:
		copied := map[string]any{}
		for key, child := range n {
			_, text := child.(string)
			if key == "description" && text || key == "format" || strings.HasPrefix(key, "x-kubernetes-") || key == "default" {
				continue
			}
			copied[key] = strip(child)
		}
		return copied
	case []any:
		copied := make([]any, len(n))
		for i, child := range n {
			copied[i] = strip(child)
		}
		return copied
	default:
		return node
	}
}

// pack returns the definitions for the repository.
func (d definitions) pack() ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := json.NewEncoder(w).Encode(d); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

func unpack(packed []byte) (definitions, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var d definitions
	err = json.NewDecoder(r).Decode(&d)
	return d, err
}

// write writes a schema for each kind where kubeconform looks for it: DIR/kind.json.
func (d definitions) write(dir string) error {
	for _, kind := range chartKinds {
		schema := maps.Clone(d[kind])
		schema["definitions"] = d
		text, err := json.Marshal(schema)
		if err != nil {
			return err
		}
		name := strings.ToLower(kind[strings.LastIndexByte(kind, '.')+1:]) + ".json"
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
