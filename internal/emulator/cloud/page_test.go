package cloud

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestConfigurationIsDocumented: every field of the configuration is on the reference page.
func TestConfigurationIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/emulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Configuration\n")
	section, _, _ = strings.Cut(section, "\n## ")
	names := fieldNames(reflect.TypeFor[Config](), "")
	for _, name := range names {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("the page does not have `%s`", name)
		}
	}
	if len(names) < 40 {
		t.Errorf("only %d fields were found", len(names))
	}
}

// fieldNames are the paths of all fields, but for switches and quotas, which have tables of their own.
func fieldNames(t reflect.Type, path string) []string {
	switch {
	case t == reflect.TypeFor[Limits]():
		return []string{path + ".<quota>"}
	case t == reflect.TypeFor[time.Time]():
		return []string{path}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return fieldNames(t.Elem(), path+"[]")
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		return fieldNames(t.Elem(), path+".<product:Action>")
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			continue
		}
		names = append(names, fieldNames(f.Type, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return names
}
