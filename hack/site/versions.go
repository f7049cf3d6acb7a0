package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// version is a release, or the tree as it is.
type version struct {
	// Name is that of the version's directory in the site: "main", or a tag.
	Name string
	// Tag is empty for the tree as it is.
	Tag   string
	pages pages
}

// ref is what links to files in the repository name.
func (v version) ref() string { return cmp.Or(v.Tag, "main") }

// release is the tag of a release. Tags of candidates have no pages of their own.
var release = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)$`)

// versionsOf returns the tree as it is, then the releases of a checkout, newest first.
func versionsOf(ctx context.Context, checkout string) ([]version, error) {
	output, err := exec.CommandContext(ctx, "git", "-C", checkout, "tag", "--list", "v*").Output()
	if err != nil {
		return nil, fmt.Errorf("list the tags: %w", err)
	}
	tags := slices.DeleteFunc(strings.Fields(string(output)), func(tag string) bool { return !release.MatchString(tag) })
	slices.SortFunc(tags, func(a, b string) int { return slices.Compare(numbers(b), numbers(a)) })
	versions := []version{{Name: "main"}}
	for _, tag := range tags {
		versions = append(versions, version{Name: tag, Tag: tag})
	}
	return versions, nil
}

// numbers are the three numbers of a release.
func numbers(tag string) []int {
	var parts []int
	for _, part := range release.FindStringSubmatch(tag)[1:] {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 0 // more digits than a version has
		}
		parts = append(parts, n)
	}
	return parts
}
