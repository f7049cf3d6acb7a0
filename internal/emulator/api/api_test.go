package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	tags := ObjectsOf("Tag", 2, Str("Key", Required, Len(1, 3)))
	rules := []Param{
		Str("Name", Required, Len(2, 4)), Str("Kind", OneOf("a", "b")), Num("Port", 1, 10, Also(-1)), Num("Open", 0, 0), Flag("On"),
		JSONList("Ids", 2), JSONArray("Items"), ListOf("Id", 2), tags,
	}
	tests := []struct {
		name   string
		params Params
		want   string
	}{
		{"good", Params{"Name": "ab", "Kind": "a", "Port": "10", "On": "true", "Ids": `["x"]`, "Items": `[{}]`, "Id.1": "x", "Tag.1.Key": "k",
			"More": "?"}, ""},
		{"missing", Params{}, "MissingParameter"},
		{"empty is missing", Params{"Name": ""}, "MissingParameter"},
		{"short", Params{"Name": "a"}, "InvalidParameter"},
		{"long", Params{"Name": "abcde"}, "InvalidParameter"},
		{"characters, not bytes", Params{"Name": "äöüß"}, ""},
		{"enumeration", Params{"Name": "ab", "Kind": "c"}, "InvalidParameter"},
		{"below", Params{"Name": "ab", "Port": "0"}, "InvalidParameter"},
		{"above", Params{"Name": "ab", "Port": "11"}, "InvalidParameter"},
		{"the exception", Params{"Name": "ab", "Port": "-1"}, ""},
		{"unbounded", Params{"Name": "ab", "Open": "100000"}, ""},
		{"number", Params{"Name": "ab", "Port": "ten"}, "InvalidParameter"},
		{"boolean", Params{"Name": "ab", "On": "1"}, "InvalidParameter"},
		{"JSON list", Params{"Name": "ab", "Ids": "x"}, "InvalidParameter"},
		{"long JSON list", Params{"Name": "ab", "Ids": `["a","b","c"]`}, "InvalidParameter"},
		{"JSON objects", Params{"Name": "ab", "Items": `["a"]`}, "InvalidParameter"},
		{"long list", Params{"Name": "ab", "Id.1": "a", "Id.2": "b", "Id.3": "c"}, "InvalidParameter"},
		{"many objects", Params{"Name": "ab", "Tag.1.Key": "a", "Tag.2.Key": "b", "Tag.3.Key": "c"}, "InvalidParameter"},
		{"field of an object", Params{"Name": "ab", "Tag.1.Key": "long"}, "InvalidParameter"},
		{"missing field of an object", Params{"Name": "ab", "Tag.1.Value": "v"}, "MissingParameter"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := Validate(rules, test.params); err != nil {
				got = err.Code
			}
			if got != test.want {
				t.Errorf("code = %q, want %q", got, test.want)
			}
		})
	}
}

// TestBounds: a number that is out of bounds is refused with those that there are.
func TestBounds(t *testing.T) {
	t.Parallel()
	rules := []Param{Num("Page", 1, 0), Num("Port", 1, 9)}
	for value, want := range map[string]string{"Page": "0 is outside 1 and more", "Port": "0 is outside 1-9"} {
		if err := Validate(rules, Params{value: "0"}); err == nil || !strings.Contains(err.Message, want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFlattened(t *testing.T) {
	t.Parallel()
	p := Params{"Id.10": "j", "Id.2": "b", "Id.1": "a", "Id.x": "?", "Ident.1": "?", "Tag.2.Key": "k2", "Tag.1.Key": "k1", "Tag.1.Value": "v1"}
	if d := cmp.Diff([]string{"a", "b", "j"}, p.List("Id")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Params{{"Key": "k1", "Value": "v1"}, {"Key": "k2"}}, p.Objects("Tag")); d != "" {
		t.Error(d)
	}
}

func TestTokenPage(t *testing.T) {
	t.Parallel()
	all := []int64{1, 3, 4, 8, 9}
	seq := func(n int64) int64 { return n }
	c := &Call{Params: Params{}}
	first, next, err := TokenPage(c, all, 2, seq)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int64{1, 3}, first); d != "" || next == "" {
		t.Fatal(d, next)
	}
	// Something before the token's place goes and something after it comes: nothing is repeated, nothing is lost.
	c.Params["NextToken"] = next
	second, next, err := TokenPage(c, []int64{3, 4, 8, 9, 10}, 4, seq)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int64{4, 8, 9, 10}, second); d != "" || next != "" {
		t.Error(d, next)
	}
	c.Params["NextToken"] = "forged"
	if _, _, err := TokenPage(c, all, 2, seq); err == nil {
		t.Error("a forged token is accepted")
	}
}

func TestObjectKeepsItsOrder(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(Object{{"b", 1}, {"a", Object{}}, {"c", []string{"x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(`{"b":1,"a":{},"c":["x"]}`, string(data)); d != "" {
		t.Error(d)
	}
}

func TestTableRefusesTwins(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("two actions of one name are accepted")
		}
	}()
	NewTable(Product{Name: "p", Actions: []Action{{Name: "A"}, {Name: "A"}}})
}
