package alicloud

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/ini.v1"
)

// Names of the files in a directory of keys, which are the keys of the Secret that is mounted there.
const (
	keyIDFile     = "accessKeyID"
	keySecretFile = "accessKeySecret"
	tokenFile     = "securityToken"
)

// mountedData is the link that the kubelet swaps when a mounted Secret changes.
const mountedData = "..data"

// NewFileCredentials returns the keys at path, which is watched: a directory with the files accessKeyID and accessKeySecret
// (and securityToken for temporary keys), as a mounted Secret has them, or a credentials file of the official tools
// (https://www.alibabacloud.com/help/en/sdk/developer-reference/v2-manage-access-credentials), of which profile is read.
// An empty profile means "default".
func NewFileCredentials(path, profile string) *WatchedCredentials {
	return NewWatchedCredentials("credentials file "+path, func() (Credentials, error) { return readKeys(path, profile) })
}

func readKeys(path, profile string) (Credentials, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Credentials{},
			fmt.Errorf("%w, accepted: a credentials file, or a directory with the files %s and %s", withoutPath(err), keyIDFile, keySecretFile)
	case info.IsDir():
		return readKeyDirectory(path)
	default:
		return readKeyFile(path, profile)
	}
}

// readKeyDirectory follows the mounted Secret's link once, so that both files are of one version.
func readKeyDirectory(path string) (Credentials, error) {
	if data, err := filepath.EvalSymlinks(filepath.Join(path, mountedData)); err == nil {
		path = data
	}
	var keys Credentials
	for _, part := range []struct {
		file     string
		value    *string
		optional bool
	}{{keyIDFile, &keys.AccessKeyID, false}, {keySecretFile, &keys.AccessKeySecret, false}, {tokenFile, &keys.SecurityToken, true}} {
		content, err := os.ReadFile(filepath.Join(path, part.file))
		if errors.Is(err, fs.ErrNotExist) && part.optional {
			continue
		}
		if err != nil {
			return Credentials{}, fmt.Errorf("%s: %w, accepted: a file with the plain key", part.file, withoutPath(err))
		}
		*part.value = strings.TrimSpace(string(content))
		if err := checkKeyText(part.file, *part.value); err != nil {
			return Credentials{}, err
		}
	}
	return keys, nil
}

// readKeyFile reads one section of an INI file. The parser's errors quote lines, which may hold a key, and are left out.
func readKeyFile(path, profile string) (Credentials, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, withoutPath(err)
	}
	file, err := ini.Load(content)
	if err != nil {
		return Credentials{}, errors.New("not a credentials file, accepted: sections such as [default] with lines \"name = value\"")
	}
	if profile == "" {
		profile = "default"
	}
	if !file.HasSection(profile) {
		return Credentials{}, fmt.Errorf("profile %q: there is no such section, accepted: one of the file's", profile)
	}
	section := file.Section(profile)
	if kind, accepted := section.Key("type").String(), []string{"", "access_key", "sts"}; !slices.Contains(accepted, kind) {
		return Credentials{}, fmt.Errorf("type: %q, accepted: \"access_key\" or \"sts\"", kind)
	}
	keys := Credentials{
		AccessKeyID: section.Key("access_key_id").String(), AccessKeySecret: section.Key("access_key_secret").String(),
		SecurityToken: section.Key("security_token").String(),
	}
	if err := checkKeyText("access_key_id", keys.AccessKeyID); err != nil {
		return Credentials{}, err
	}
	return keys, checkKeyText("access_key_secret", keys.AccessKeySecret)
}

// checkKeyText never shows the value.
func checkKeyText(field, value string) error {
	switch {
	case value == "":
		return fmt.Errorf("%s: empty, accepted: the plain key", field)
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("%s: the value (not shown) has characters that no key has, accepted: the plain key in one line", field)
	}
	return nil
}

// withoutPath leaves the reason: who reports it has named the path.
func withoutPath(err error) error {
	if reason, ok := errors.AsType[*fs.PathError](err); ok {
		return reason.Err
	}
	return err
}
