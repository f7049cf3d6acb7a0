package provider

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Bounds of the names of fields that are shown: the text may be anything.
const (
	maxUnknownFields = 20
	maxFieldName     = 60
)

// unknownFields names the fields of a cloud-config that this program does not know, as the file spells them, without their values: they may be keys.
func unknownFields(text []byte) []string {
	file := map[string]any{}
	if yaml.Unmarshal(text, &file) != nil {
		return nil // the reader of the file says why
	}
	known, names := knownFields(), []string(nil)
	for key, value := range file {
		global, isObject := value.(map[string]any)
		if !strings.EqualFold(key, "Global") {
			names = append(names, problem.Cut(key, maxFieldName))
			continue
		}
		if !isObject {
			continue
		}
		for name := range global {
			if !known[strings.ToLower(name)] {
				names = append(names, "Global."+problem.Cut(name, maxFieldName))
			}
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxUnknownFields)]
}

// knownFields are the names of the fields below "Global", in lower case.
func knownFields() map[string]bool {
	known := map[string]bool{}
	collectFields(reflect.TypeFor[fileConfig]().Field(0).Type, known)
	return known
}

// collectFields notes the names of the fields of a struct, and of those that are embedded, in lower case.
func collectFields(of reflect.Type, known map[string]bool) {
	for i := range of.NumField() {
		field := of.Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			known[strings.ToLower(name)] = true
			continue
		}
		if field.Anonymous {
			collectFields(field.Type, known)
		}
	}
}
