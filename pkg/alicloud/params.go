package alicloud

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// params are the parameters of one call by their wire names. An empty value is never sent: the SDK drops it, so a field
// cannot be cleared by sending "".
type params map[string]string

func (p params) set(name, value string) params {
	if value != "" {
		p[name] = value
	}
	return p
}

func (p params) setInt(name string, value int) params {
	p[name] = strconv.Itoa(value)
	return p
}

// setText, setNumber and setBool write a value that is given; nil leaves what it is about as it is.
func (p params) setText(name string, value *string) params {
	if value != nil {
		p.set(name, *value)
	}
	return p
}

func (p params) setNumber(name string, value *int) params {
	if value != nil {
		p.setInt(name, *value)
	}
	return p
}

func (p params) setBool(name string, value *bool) params {
	if value != nil {
		p[name] = strconv.FormatBool(*value)
	}
	return p
}

// setList writes values as name.1, name.2, …, the flattened form of a list parameter.
func (p params) setList(name string, values []string) params {
	for i, value := range values {
		p[fmt.Sprintf("%s.%d", name, i+1)] = value
	}
	return p
}

// setTags writes tags as Tag.N.Key and Tag.N.Value.
func (p params) setTags(tags []Tag) params {
	for i, tag := range tags {
		p[fmt.Sprintf("Tag.%d.Key", i+1)] = tag.Key
		p.set(fmt.Sprintf("Tag.%d.Value", i+1), tag.Value)
	}
	return p
}

// setJSON writes value as JSON text, the form of the list parameters that are not flattened.
func (p params) setJSON(name string, value any) params {
	text, err := json.Marshal(value)
	if err != nil { // only strings, numbers and flat structs come here
		panic(fmt.Sprintf("encode parameter %s: %v", name, err))
	}
	p[name] = string(text)
	return p
}

// Tag is one key and value on a cloud resource.
type Tag struct {
	Key   string
	Value string
}
