// Package support collects what a report about a defect needs into one archive, without secrets. It reads only. It does not know what the
// manager does: the reports come from its caller.
package support

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// Archive is a gzipped tar archive in the making. All files are below one directory. It is not safe for concurrent use.
type Archive struct {
	gzip     *gzip.Writer
	tar      *tar.Writer
	redactor *Redactor
	dir      string
	made     time.Time
	contents []string
	missing  []string
	err      error
}

// NewArchive begins an archive whose files are below the directory dir. Every file passes the redactor.
func NewArchive(to io.Writer, redactor *Redactor, dir string, made time.Time) *Archive {
	zipped := gzip.NewWriter(to)
	return &Archive{gzip: zipped, tar: tar.NewWriter(zipped), redactor: redactor, dir: dir, made: made}
}

// Text adds a file. about says in the list of contents what it has.
func (a *Archive) Text(name, about, text string) {
	a.contents = append(a.contents, fmt.Sprintf("%-28s %s", name, about))
	a.write(name, text)
}

// JSON adds a file with the JSON of a value.
func (a *Archive) JSON(name, about string, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		a.Missing(name, err)
		return
	}
	a.Text(name, about, string(text)+"\n")
}

// Missing notes why something is not in the archive.
func (a *Archive) Missing(name string, err error) {
	a.missing = append(a.missing, fmt.Sprintf("%s: %s", name, strings.ReplaceAll(a.redactor.Text(err.Error()), "\n", " ")))
}

// Close adds the list of contents, ends the archive, and returns what is missing in it.
func (a *Archive) Close() (missing []string, err error) {
	var text strings.Builder
	fmt.Fprintf(&text, "Support bundle of cloud-controller-manager, created %s\n\n%s\n", a.made.UTC().Format(time.RFC3339),
		strings.Join(a.contents, "\n"))
	text.WriteString("\nAccess keys, tokens and passwords are replaced with " + Redacted +
		". Names, addresses and IDs of your resources are not.\n")
	if len(a.missing) > 0 {
		text.WriteString("\nMissing:\n" + strings.Join(a.missing, "\n") + "\n")
	}
	a.write("README.txt", text.String())
	return a.missing, errors.Join(a.err, a.tar.Close(), a.gzip.Close())
}

func (a *Archive) write(name, text string) {
	text = a.redactor.Text(text)
	err := a.tar.WriteHeader(&tar.Header{Name: path.Join(a.dir, a.redactor.Text(name)), Mode: 0o600, Size: int64(len(text)), ModTime: a.made,
		Format: tar.FormatPAX})
	if err == nil {
		_, err = io.WriteString(a.tar, text)
	}
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("write %s: %w", name, err)
	}
}
