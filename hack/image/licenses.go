package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"
)

// licenseName is how modules call the files that have to go with a program that is linked from them.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([._-].*)?$`)

// licenses returns the licence and notice texts of the Go release and of all modules that the programs are linked from, as the programs
// themselves report, and of the root certificates. Modules with the same texts share them.
func licenses(binaries ...[]byte) ([]byte, error) {
	goroot, err := goEnv("GOROOT")
	if err != nil {
		return nil, err
	}
	cache, err := goEnv("GOMODCACHE")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for _, binary := range binaries {
		info, err := buildinfo.Read(bytes.NewReader(binary))
		if err != nil {
			return nil, fmt.Errorf("licences: %w", err)
		}
		dirs["Go "+strings.TrimPrefix(info.GoVersion, "go")] = goroot
		for _, module := range append(info.Deps, &debug.Module{Path: rootsModule, Version: rootsVersion()}) {
			if module.Replace != nil {
				module = module.Replace
			}
			dirs[module.Path+" "+module.Version] = filepath.Join(cache, filepath.FromSlash(escaped(module.Path))+"@"+escaped(module.Version))
		}
	}
	return grouped(dirs)
}

// grouped returns the texts in the directories, each once, under the names of those that have it.
func grouped(dirs map[string]string) ([]byte, error) {
	names := map[string][]string{}
	for name, dir := range dirs {
		text, err := licenseTexts(dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", name, err)
		}
		names[text] = append(names[text], name)
	}
	sections := make([]string, 0, len(names))
	for text, of := range names {
		slices.Sort(of)
		sections = append(sections, strings.Join(of, "\n")+"\n\n"+text)
	}
	slices.Sort(sections)
	line := "\n" + strings.Repeat("=", 80) + "\n\n"
	return []byte("The licences and notices of what the programs are linked from.\n" + line + strings.Join(sections, line)), nil
}

// licenseTexts returns the texts at the top of a module. One without any is an error: then somebody has to look.
func licenseTexts(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, entry := range entries {
		if entry.IsDir() || !licenseName.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))+"\n")
	}
	if len(texts) == 0 {
		return "", fmt.Errorf("%s has no licence file", dir)
	}
	return strings.Join(texts, "\n"), nil
}

// escaped is a path or version as the module cache writes it: https://go.dev/ref/mod#goproxy-protocol.
func escaped(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsUpper(r) {
			out.WriteByte('!')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// writeLicenses writes those of programs into a file.
func writeLicenses(path string, programs []string) error {
	var binaries [][]byte
	for _, program := range programs {
		binary, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		binaries = append(binaries, binary)
	}
	text, err := licenses(binaries...)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644) //nolint:gosec // a file of a release
}
