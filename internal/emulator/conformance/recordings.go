package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Recordings reads the documents in a directory, by their paths.
func Recordings(dir string) (map[string]Document, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("find recordings: %w", err)
	}
	all := map[string]Document{}
	for _, path := range paths {
		if all[path], err = Read(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Measured are the facts that recordings of real accounts confirm, with the latest date and its region.
func Measured(dir string) (map[string]string, error) {
	all, err := Recordings(dir)
	if err != nil {
		return nil, err
	}
	var documents []Document
	for _, d := range all {
		documents = append(documents, d)
	}
	return measured(documents), nil
}

func measured(documents []Document) map[string]string {
	slices.SortFunc(documents, func(a, b Document) int { return strings.Compare(a.Date, b.Date) })
	confirmed := map[string]string{}
	for _, d := range documents {
		if !d.Real {
			continue
		}
		for fact := range d.Checked() {
			confirmed[fact] = d.Date + ", " + d.Region
		}
		for _, f := range d.Findings() {
			delete(confirmed, f.Fact)
		}
	}
	return confirmed
}
