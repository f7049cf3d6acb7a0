package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Type is the form of a parameter's value.
type Type string

// The forms in which parameters travel.
const (
	String Type = "string"
	Int    Type = "integer"
	Bool   Type = "boolean"
	// JSONStrings is a JSON array of strings in one parameter: InstanceIds=["i-1"].
	JSONStrings Type = "JSON array of strings"
	// JSONObjects is a JSON array of objects in one parameter: BackendServers=[{...}].
	JSONObjects Type = "JSON array of objects"
	// Strings is a flattened list: ResourceId.1=lb-1.
	Strings Type = "list"
	// Objects is a flattened list of objects: Tag.1.Key=a.
	Objects Type = "list of objects"
)

// Param is the rule for one parameter.
type Param struct {
	Name     string
	Type     Type
	Required bool
	// Min and Max bound a number; for strings the length in characters, for lists the number of items. Max 0 = no bound.
	Min, Max int
	// Enum lists the accepted values; empty accepts any. AnyCase also accepts them in other letter cases.
	Enum    []string
	AnyCase bool
	// Prefix begins further accepted values beside those of Enum; "" accepts none.
	Prefix string
	// Also is a single number accepted outside Min..Max (-1 for "no limit", -520 for "the backend's port").
	Also int
	// Fields are the rules of one item of an object list.
	Fields []Param
}

// Str makes a rule for a string; the options narrow it.
func Str(name string, opts ...func(*Param)) Param { return param(name, String, opts) }

// Num makes a rule for a number within min..max.
func Num(name string, lo, hi int, opts ...func(*Param)) Param {
	p := Param{Name: name, Type: Int, Min: lo, Max: hi}
	return with(p, opts)
}

// Flag makes a rule for a boolean.
func Flag(name string, opts ...func(*Param)) Param { return param(name, Bool, opts) }

// ListOf makes a rule for a flattened list of strings with at most limit items (0 = any number).
func ListOf(name string, limit int, opts ...func(*Param)) Param {
	return with(Param{Name: name, Type: Strings, Max: limit}, opts)
}

// ObjectsOf makes a rule for a flattened list of objects with at most limit items (0 = any number).
func ObjectsOf(name string, limit int, fields ...Param) Param {
	return Param{Name: name, Type: Objects, Max: limit, Fields: fields}
}

// JSONList makes a rule for a JSON array of strings with at most limit items.
func JSONList(name string, limit int, opts ...func(*Param)) Param {
	return with(Param{Name: name, Type: JSONStrings, Max: limit}, opts)
}

// JSONArray makes a rule for a JSON array of objects. Its length is the business of the action, which knows the quota.
func JSONArray(name string, opts ...func(*Param)) Param { return param(name, JSONObjects, opts) }

// Required makes a parameter mandatory.
func Required(p *Param) { p.Required = true }

// OneOf restricts a parameter to the given values.
func OneOf(values ...string) func(*Param) { return func(p *Param) { p.Enum = values } }

// OneOfAnyCase restricts a parameter to the given values, in whatever letter case they are sent, and takes them as they are given here.
func OneOfAnyCase(values ...string) func(*Param) {
	return func(p *Param) { p.Enum, p.AnyCase = values, true }
}

// OrPrefix accepts, beside the values of OneOf, all that begin with the prefix.
func OrPrefix(prefix string) func(*Param) { return func(p *Param) { p.Prefix = prefix } }

// Len bounds the length of a string in characters.
func Len(lo, hi int) func(*Param) { return func(p *Param) { p.Min, p.Max = lo, hi } }

// Also accepts one more number outside the range.
func Also(n int) func(*Param) { return func(p *Param) { p.Also = n } }

func param(name string, t Type, opts []func(*Param)) Param {
	return with(Param{Name: name, Type: t}, opts)
}

func with(p Param, opts []func(*Param)) Param {
	for _, o := range opts {
		o(&p)
	}
	return p
}

// Validate checks params against the rules and returns the first violation, required parameters first, as the cloud's
// gateway does.
func Validate(rules []Param, params Params) *Error {
	for i := range rules {
		if rules[i].Required && !rules[i].present(params) {
			return Missing(rules[i].Name)
		}
	}
	for i := range rules {
		if err := rules[i].check(params); err != nil {
			return err
		}
	}
	return nil
}

func (p *Param) present(params Params) bool {
	switch p.Type {
	case Strings:
		return len(params.List(p.Name)) > 0
	case Objects:
		return len(params.Objects(p.Name)) > 0
	default:
		return params.Has(p.Name)
	}
}

func (p *Param) check(params Params) *Error {
	switch p.Type {
	case Strings:
		return p.checkCount(len(params.List(p.Name)))
	case Objects:
		return p.checkObjects(params.Objects(p.Name))
	}
	value := params[p.Name]
	if value == "" {
		return nil
	}
	switch p.Type {
	case Int:
		return p.checkInt(value)
	case Bool:
		if value != "true" && value != "false" {
			return Invalid(p.Name, "%q is neither true nor false", value)
		}
	case JSONStrings:
		return p.checkJSONStrings(value)
	case JSONObjects:
		var items []map[string]any
		if json.Unmarshal([]byte(value), &items) != nil {
			return Invalid(p.Name, "not a JSON array of objects")
		}
	default:
		if at := slices.IndexFunc(p.Enum, func(known string) bool { return strings.EqualFold(known, value) }); p.AnyCase && at >= 0 {
			value = p.Enum[at]
			params[p.Name] = value
		}
		return p.checkString(value)
	}
	return nil
}

func (p *Param) checkInt(value string) *Error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return Invalid(p.Name, "%q is not a number", value)
	}
	if p.Also != 0 && n == p.Also {
		return nil
	}
	if n < p.Min || (p.Max != 0 && n > p.Max) {
		return Invalid(p.Name, "%d is outside %s", n, p.bounds())
	}
	return nil
}

func (p *Param) checkString(value string) *Error {
	prefixed := p.Prefix != "" && strings.HasPrefix(value, p.Prefix)
	if len(p.Enum) > 0 && !prefixed && !slices.Contains(p.Enum, value) {
		return Invalid(p.Name, "%q is none of %s", value, strings.Join(p.Enum, ", "))
	}
	if n := utf8.RuneCountInString(value); n < p.Min || (p.Max != 0 && n > p.Max) {
		return Invalid(p.Name, "its length %d is outside %s", n, p.bounds())
	}
	return nil
}

// bounds are what numbers or lengths are accepted; a maximum of 0 is none.
func (p *Param) bounds() string {
	if p.Max == 0 {
		return strconv.Itoa(p.Min) + " and more"
	}
	return fmt.Sprintf("%d-%d", p.Min, p.Max)
}

func (p *Param) checkJSONStrings(value string) *Error {
	var items []string
	if json.Unmarshal([]byte(value), &items) != nil {
		return Invalid(p.Name, "not a JSON array of strings")
	}
	return p.checkCount(len(items))
}

func (p *Param) checkCount(n int) *Error {
	if p.Max != 0 && n > p.Max {
		return Invalid(p.Name, "%d items are more than %d", n, p.Max)
	}
	return nil
}

func (p *Param) checkObjects(objects []Params) *Error {
	if err := p.checkCount(len(objects)); err != nil {
		return err
	}
	for _, o := range objects {
		if err := Validate(p.Fields, o); err != nil {
			return err
		}
	}
	return nil
}

// JSONStrings returns the items of a validated JSON array of strings; ok is false when the parameter is absent, which
// differs from an empty array.
func (p Params) JSONStrings(name string) (items []string, ok bool) {
	if p[name] == "" {
		return nil, false
	}
	if err := json.Unmarshal([]byte(p[name]), &items); err != nil {
		return nil, true
	}
	return items, true
}
