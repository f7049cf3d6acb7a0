package testkit

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

// Unpack returns the files of a gzip-compressed tar archive by name.
func Unpack(tb testing.TB, archive io.Reader) map[string]string {
	tb.Helper()
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		tb.Fatal(err)
	}
	files, reader := map[string]string{}, tar.NewReader(unzipped)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			tb.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			tb.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}
