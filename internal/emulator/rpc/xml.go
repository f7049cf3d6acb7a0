package rpc

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"reflect"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// writeFields writes the fields of a response object as XML elements. encoding/xml is not used because one Go value has
// to give both encodings under the same names: a field's element is its JSON name, a list repeats its element.
func writeFields(b *bytes.Buffer, v reflect.Value) {
	v = indirect(v)
	if !v.IsValid() {
		return
	}
	// An embedded struct of an unexported type cannot be taken out as an interface; its exported fields can.
	if v.CanInterface() {
		if o, ok := reflect.TypeAssert[api.Object](v); ok {
			for _, f := range o {
				writeElement(b, f.Name, reflect.ValueOf(f.Value))
			}
			return
		}
	}
	if v.Kind() != reflect.Struct {
		return
	}
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			writeFields(b, v.Field(i))
			continue
		}
		name, omitEmpty := f.Name, false
		if tag := f.Tag.Get("json"); tag != "" {
			name, omitEmpty = jsonName(tag, name)
		}
		if name == "-" || (omitEmpty && v.Field(i).IsZero()) {
			continue
		}
		writeElement(b, name, v.Field(i))
	}
}

func jsonName(tag, field string) (name string, omitEmpty bool) {
	head, options, _ := strings.Cut(tag, ",")
	if head == "" {
		return field, options == "omitempty"
	}
	return head, options == "omitempty"
}

func writeElement(b *bytes.Buffer, name string, v reflect.Value) {
	v = indirect(v)
	if !v.IsValid() {
		return
	}
	_, object := reflect.TypeAssert[api.Object](v)
	switch {
	case object, v.Kind() == reflect.Struct:
		b.WriteString("<" + name + ">")
		writeFields(b, v)
		b.WriteString("</" + name + ">")
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			writeElement(b, name, v.Index(i))
		}
	default:
		b.WriteString("<" + name + ">")
		// Writing to a bytes.Buffer cannot fail.
		_ = xml.EscapeText(b, []byte(fmt.Sprint(v.Interface())))
		b.WriteString("</" + name + ">")
	}
}

func indirect(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}
