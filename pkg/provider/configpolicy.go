package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// ParsePolicy reads a policy from JSON, as a flag has it. Its errors are those of the same fields in the cloud-config. A field that does
// not exist is an error: a rule with a typing mistake would restrict nothing.
func ParsePolicy(text string) (policy.Policy, error) {
	var given policy.Policy
	fields := fieldsOf(reflect.TypeFor[policy.Policy]())
	accepted := "an object with " + strings.Join(namesOf(fields), ", ")
	value, err := oneJSON(text)
	if err != nil {
		return given, fmt.Errorf("not valid JSON (%w), accepted: %s", err, accepted)
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return given, fmt.Errorf("%s, accepted: %s", shownValue(value), accepted)
	}
	var found inspection
	found.object("", fields, object)
	for _, name := range found.unknown {
		found.wrong.addf("unknown field %s", name)
	}
	if err = found.wrong.err(); err != nil {
		return given, err
	}
	if err = yaml.Unmarshal([]byte(text), &given); err != nil { // it accepts a number as text, as in the cloud-config
		return given, fmt.Errorf("not valid JSON, accepted: %s", accepted)
	}
	return given, given.Check()
}

// oneJSON reads a text that holds one value.
func oneJSON(text string) (value any, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err = decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err = decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the end of the object")
	}
	return value, nil
}
