package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Bounds of what is shown of a cloud-config: the text may be anything.
const (
	maxUnknownFields = 20
	maxFieldName     = 60
	maxFieldValue    = 60
)

// inspection is what can be said about a cloud-config from the names and types of its fields.
type inspection struct {
	// wrong are the values of a wrong type, for users: the decoder reports only the first one, in terms of the Go type.
	wrong problemList
	// unknown are the names that nobody knows, as the file spells them, without their values: they may be keys.
	unknown []string
}

// inspect returns the file without the values of a wrong type, and what it has found.
func inspect(text []byte) (map[string]any, inspection, error) {
	file, found := map[string]any{}, inspection{}
	if err := yaml.Unmarshal(text, &file, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }); err != nil {
		return nil, found, err
	}
	fields := globalFields()
	for _, key := range slices.Sorted(maps.Keys(file)) {
		global, isObject := file[key].(map[string]any)
		switch {
		case !strings.EqualFold(key, "Global"):
			found.unknownAtTop(key, fields)
		case isObject:
			found.object("Global", fields, global)
		case file[key] != nil:
			found.wrong.addf("Global: not an object, accepted: an object with the fields of the cloud-config")
			delete(file, key)
		}
	}
	found.unknown = found.unknown[:min(len(found.unknown), maxUnknownFields)]
	return file, found, nil
}

// globalFields are the fields below "Global", by their names in lower case.
func globalFields() map[string]reflect.StructField {
	fields := fieldsOf(reflect.TypeFor[settings]())
	maps.Copy(fields, fieldsOf(reflect.TypeFor[unusedFields]()))
	maps.Copy(fields, fieldsOf(reflect.TypeFor[policy.Policy]()))
	return fields
}

func fieldsOf(of reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for i := range of.NumField() {
		fields[strings.ToLower(jsonName(of.Field(i)))] = of.Field(i)
	}
	return fields
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func (i *inspection) unknownAtTop(key string, fields map[string]reflect.StructField) {
	key = problem.Cut(key, maxFieldName)
	if _, ok := fields[strings.ToLower(key)]; ok {
		i.unknown = append(i.unknown, key+" (belongs below Global)")
		return
	}
	i.unknown = append(i.unknown, key+suggestion(key, []string{"Global"}))
}

// object takes values of a wrong type out of an object, and reports whether there were none.
func (i *inspection) object(place string, fields map[string]reflect.StructField, object map[string]any) bool {
	fits := true
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field, known := fields[strings.ToLower(name)]
		if !known {
			name = problem.Cut(name, maxFieldName)
			i.unknown = append(i.unknown, below(place, name)+suggestion(name, namesOf(fields)))
			continue
		}
		if !i.value(below(place, jsonName(field)), field.Type, object[name]) {
			fits = false
			delete(object, name)
		}
	}
	return fits
}

// below returns the place of a field in an object, whose own place is empty where it is the whole text.
func below(place, name string) string { return strings.TrimPrefix(place+"."+name, ".") }

func namesOf(fields map[string]reflect.StructField) []string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		names = append(names, jsonName(fields[key]))
	}
	return names
}

// value reports whether a value can be read as a type, as the decoder of the file would do it, and notes the reason if not.
func (i *inspection) value(place string, of reflect.Type, value any) bool {
	fits := value == nil
	switch of.Kind() { //nolint:exhaustive // the fields have no other kinds
	case reflect.String:
		switch value.(type) {
		case string, bool, json.Number:
			fits = true
		}
	case reflect.Bool:
		_, isBool := value.(bool)
		fits = fits || isBool
	case reflect.Int, reflect.Int64:
		number, _ := value.(json.Number)
		_, err := strconv.ParseInt(number.String(), 10, of.Bits())
		fits = fits || err == nil
	default:
		return fits || i.container(place, of, value)
	}
	if !fits {
		i.reject(place, of, value)
	}
	return fits
}

// container is [inspection.value] for values that hold others. An object is read without its wrong values, a list is not read at all.
func (i *inspection) container(place string, of reflect.Type, value any) bool {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case of.Kind() == reflect.Struct && isObject:
		return i.object(place, fieldsOf(of), object)
	case of.Kind() == reflect.Map && isObject:
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if !i.value(place+"."+problem.Cut(key, maxFieldName), of.Elem(), object[key]) {
				delete(object, key)
			}
		}
		return true
	case of.Kind() == reflect.Slice && isList:
		fits := true
		for n, item := range list {
			fits = i.value(fmt.Sprintf("%s[%d]", place, n), of.Elem(), item) && fits
		}
		return fits
	}
	i.reject(place, of, value)
	return false
}

func (i *inspection) reject(place string, of reflect.Type, value any) {
	shown := "the value (not shown)"
	if name := strings.ToLower(strings.TrimPrefix(place, "Global.")); !slices.Contains(secretFields, name) {
		shown = shownValue(value)
	}
	i.wrong.addf("%s: %s, accepted: %s", place, shown, acceptedAt(place, of))
}

// shownValue shows no lists and objects: they are long, and may hold anything.
func shownValue(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(problem.Cut(v, maxFieldValue))
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprint(value)
}

// acceptedForms are those of fields whose type does not say enough.
var acceptedForms = map[string]string{
	"Global.backendSubset": acceptedSubset,
	"Global.quotas":        `an object with numbers, such as {"slb_quota_listeners_num": 70}`,
	"Global.endpoints":     `an object with text, such as {"slb": "slb.example"}`,
}

func acceptedAt(place string, of reflect.Type) string {
	if form, ok := acceptedForms[place]; ok {
		return form
	}
	return acceptedAs(of)
}

func acceptedAs(of reflect.Type) string {
	switch of.Kind() { //nolint:exhaustive // the fields have no other kinds
	case reflect.Bool:
		return "true or false, without quotes"
	case reflect.Int, reflect.Int64:
		return "a whole number, without quotes"
	case reflect.Slice:
		return "a list, each item of which is " + acceptedAs(of.Elem())
	case reflect.Struct:
		return "an object with " + strings.Join(namesOf(fieldsOf(of)), " and ")
	}
	return "text"
}

// suggestion returns the known name that a misspelled one is probably meant to be, to follow that name. Empty if none is similar.
func suggestion(name string, known []string) string {
	for _, candidate := range known {
		if annotation.Near(strings.ToLower(name), strings.ToLower(candidate)) {
			return " (did you mean " + candidate + "?)"
		}
	}
	return ""
}
