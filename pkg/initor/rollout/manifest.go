package rollout

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// WriteManifest writes objects as YAML documents, which `kubectl apply` takes.
func WriteManifest(w io.Writer, objects []runtime.Object) error {
	for _, object := range objects {
		fields, err := fieldsOf(object)
		if err != nil {
			return err
		}
		text, err := yaml.Marshal(fields)
		if err != nil {
			return fmt.Errorf("encode a %T: %w", object, err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
	}
	return nil
}

// fieldsOf returns what is to be said about an object. The status is not ours to say anything about, but Go's types have one.
func fieldsOf(object runtime.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert a %T: %w", object, err)
	}
	delete(fields, "status")
	return fields, nil
}
