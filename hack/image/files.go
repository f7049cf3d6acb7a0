package main

import (
	"io/fs"
	"path"
	"slices"
)

// certFile is where Go programs look for root certificates first.
const certFile = "etc/ssl/certs/ca-certificates.crt"

// dirMode is that of every directory of an image.
const dirMode = 0o755

// file is one of an image: a regular one, or a symbolic link.
type file struct {
	path   string
	mode   fs.FileMode
	data   []byte
	linkTo string // empty for a regular file
}

// parents are the directories that f is in, the outermost first.
func (f file) parents() []string {
	var dirs []string
	for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// files returns all that is in the image of p: root certificates, the program, what it is made of, and the licences of that.
func files(p program, version string, binary []byte) ([]file, error) {
	bill, err := billOfMaterials(p, version, binary)
	if err != nil {
		return nil, err
	}
	texts, err := licenses(binary)
	if err != nil {
		return nil, err
	}
	all := []file{
		{path: certFile, mode: 0o644, data: rootCertificates()}, {path: p.path, mode: 0o755, data: binary},
		{path: "usr/share/sbom/" + p.name + ".spdx.json", mode: 0o644, data: bill},
		{path: "usr/share/licenses/" + p.name + ".txt", mode: 0o644, data: texts},
	}
	if p.link != "" {
		all = append(all, file{path: p.link, mode: 0o777, linkTo: "/" + p.path})
	}
	return all, nil
}
