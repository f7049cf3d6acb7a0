package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLicensesOfAllModules: MIT, BSD and Apache licences ask for their texts in what is distributed as a program.
func TestLicensesOfAllModules(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		contents, _ := packed(t, p)
		at := slices.IndexFunc(contents, func(f file) bool { return f.path == "usr/share/licenses/"+p.name+".txt" })
		if at < 0 {
			t.Fatalf("%s: no licences", p.name)
		}
		text := string(contents[at].data)
		info, err := buildinfo.Read(bytes.NewReader(ownBinary(t)))
		if err != nil {
			t.Fatal(err)
		}
		for _, module := range info.Deps {
			if !strings.Contains(text, "\n"+module.Path+" "+module.Version+"\n") {
				t.Errorf("%s: no licence of %s %s", p.name, module.Path, module.Version)
			}
		}
		for _, part := range []string{"\nGo 1.", "\n" + rootsModule + " v", "Copyright 2009 The Go Authors", "Apache License"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is missing", p.name, part)
			}
		}
	}
}

// TestModuleWithoutLicense: nobody may distribute it, so that there is no image.
func TestModuleWithoutLicense(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := grouped(map[string]string{"example.com/m v1.0.0": dir}); err == nil {
		t.Error("no error")
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte("free\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := grouped(map[string]string{"example.com/m v1.0.0": dir, "example.com/n v1.0.0": dir})
	if err != nil || strings.Count(string(text), "free\n") != 1 ||
		!strings.Contains(string(text), "example.com/m v1.0.0\nexample.com/n v1.0.0\n") {
		t.Errorf("%s, %v", text, err)
	}
	if got := escaped("github.com/Azure/go-autorest"); got != "github.com/!azure/go-autorest" {
		t.Errorf("escaped: %s", got)
	}
}
