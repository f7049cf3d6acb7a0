package alicloud

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// mountedSecret is a directory as the kubelet makes it: the files are links through "..data", which is swapped as a whole.
type mountedSecret struct {
	*testing.T
	dir      string
	versions int
}

func mountSecret(t *testing.T, files map[string]string) *mountedSecret {
	t.Helper()
	m := &mountedSecret{T: t, dir: t.TempDir()}
	m.swap(files)
	for name := range files {
		m.must(os.Symlink(filepath.Join(mountedData, name), filepath.Join(m.dir, name)))
	}
	return m
}

func (m *mountedSecret) swap(files map[string]string) {
	m.Helper()
	m.versions++
	version := "..version-" + strings.Repeat("i", m.versions)
	m.must(os.Mkdir(filepath.Join(m.dir, version), 0o700))
	for name, content := range files {
		m.must(os.WriteFile(filepath.Join(m.dir, version, name), []byte(content), 0o600))
	}
	next := filepath.Join(m.dir, "..data_tmp")
	m.must(os.Symlink(version, next))
	m.must(os.Rename(next, filepath.Join(m.dir, mountedData)))
}

func (m *mountedSecret) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func TestFileCredentialsFollowTheirContent(t *testing.T) {
	t.Parallel()
	pair := func(id, secret string) map[string]string {
		return map[string]string{keyIDFile: id + "\n", keySecretFile: secret + "\n"}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := recorded(t.Context())
		mounted := mountSecret(t, pair("id-1", "s3cret-1"))
		provider := NewFileCredentials(mounted.dir, "")
		if got := keyOf(ctx, t, provider); got != "id-1" {
			t.Fatalf("key %q", got)
		}
		mounted.swap(pair("id-2", "s3cret-2"))
		time.Sleep(rereadAfter)
		if got := keyOf(ctx, t, provider); got != "id-2" {
			t.Errorf("key %q after the swap, want id-2", got)
		}
		for range 5 { // the same bad content, seen often, is logged once
			mounted.swap(pair("id-3", "s3cret 3"))
			time.Sleep(rereadAfter)
			if got := keyOf(ctx, t, provider); got != "id-2" {
				t.Errorf("key %q with a bad file, want the last good one", got)
			}
		}
		mounted.swap(pair("id-4", "s3cret-4"))
		if fresh, err := provider.Refresh(ctx, Credentials{}); err != nil || fresh.AccessKeyID != "id-4" {
			t.Errorf("refresh at once: %q, %v, want id-4", fresh.AccessKeyID, err)
		}
		all := strings.Join(lines(), "\n")
		if len(lines()) != 3 || strings.Contains(all, "s3cret") || !strings.Contains(all, keySecretFile) {
			t.Errorf("log, want three lines (changed, bad, changed) that name the field and show no key:\n%s", all)
		}
	})
}

func TestFileCredentialsBadContent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content, profile string
		want             []string
	}{
		"no INI":     {content: "access_key_id s3cret", want: []string{"not a credentials file", "accepted: "}},
		"no section": {content: "[other]\naccess_key_id = a\n", want: []string{`profile "default"`, "accepted: "}},
		"no profile": {content: "[default]\naccess_key_id = a\n", profile: "prod", want: []string{`profile "prod"`}},
		"other type": {content: "[default]\ntype = ram_role_arn\naccess_key_secret = s3cret\n",
			want: []string{`type: "ram_role_arn"`, "accepted: "}},
		"no secret": {content: "[default]\naccess_key_id = a\n", want: []string{"access_key_secret: empty"}},
		"secret spaced": {content: "[default]\naccess_key_id = a\naccess_key_secret = s3cret spaced\n",
			want: []string{"access_key_secret", "not shown"}},
	} {
		path := filepath.Join(t.TempDir(), "credentials")
		if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := NewFileCredentials(path, test.profile).Credentials(t.Context())
		var none *CredentialsError
		if !errors.As(err, &none) || none.IsTemporary() || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s: error %v, want a lasting CredentialsError in one line without the secret", name, err)
		}
		for _, want := range append(test.want, path) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not say %q", name, err, want)
			}
		}
	}
	_, err := NewFileCredentials("/does/not/exist", "").Credentials(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing file: %v", err)
	}
}

func TestFileCredentialsOfficialFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credentials")
	content := "[default]\ntype = access_key\naccess_key_id = a\naccess_key_secret = b\n[temp]\ntype = sts\naccess_key_id = c\naccess_key_secret = d\nsecurity_token = e\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for profile, want := range map[string]Credentials{
		"": {AccessKeyID: "a", AccessKeySecret: "b"}, "temp": {AccessKeyID: "c", AccessKeySecret: "d", SecurityToken: "e"},
	} {
		if got, err := NewFileCredentials(path, profile).Credentials(t.Context()); err != nil || got != want {
			t.Errorf("profile %q: not the keys of the file: %v", profile, err)
		}
	}
}
