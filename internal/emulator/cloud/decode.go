package cloud

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"
)

// Decode reads one JSON value. Unknown fields are errors, because a misspelled one would silently do nothing.
func Decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return explain(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// explain says of a value of a wrong type which field it is in, and what the field accepts.
func explain(err error) error {
	var moment *time.ParseError
	if errors.As(err, &moment) { // the decoder does not say in which field
		return fmt.Errorf("%q, accepted: a time such as 2027-01-02T15:04:05Z", moment.Value)
	}
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%s: %s, accepted: %s", cmp.Or(wrong.Field, "the whole"), wrong.Value, accepted(wrong.Type))
}

func accepted(t reflect.Type) string {
	if t == reflect.TypeFor[Duration]() {
		return `a duration such as "30s"`
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a number (" + t.String() + ")"
	}
}
