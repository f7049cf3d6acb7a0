package provider

import (
	"context"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/support"
)

// minKeyID is how long an access key ID is at least: shorter ones are those of tests, and words.
const minKeyID = 12

// Secrets returns the access keys and tokens that this program knows, so that they can be taken out of what is shown. A source that fails
// has none that can be in use.
func (c *Cloud) Secrets(ctx context.Context) []string {
	secrets := []string{c.config.AccessKeySecret, c.env.Keys.Secret, c.env.Keys.Token}
	if token, err := os.ReadFile(c.env.Role.TokenFile); err == nil {
		secrets = append(secrets, strings.TrimSpace(string(token)))
	}
	ids := []string{c.config.AccessKeyID, c.env.Keys.ID}
	if c.credentials != nil {
		if keys, err := c.credentials.Credentials(ctx); err == nil {
			secrets, ids = append(secrets, keys.AccessKeySecret, keys.SecurityToken), append(ids, keys.AccessKeyID)
		}
	}
	for _, id := range ids {
		if len(id) >= minKeyID {
			secrets = append(secrets, id)
		}
	}
	return secrets
}

// secretFields are the fields of the cloud-config that hold keys.
var secretFields = []string{"accesskeyid", "accesskeysecret", "uid"}

// RedactConfig returns the cloud-config without its keys. Fields that this program does not know, for example a misspelled one, keep their
// names and lose their values, too. Text that is no cloud-config is an error that does not quote it.
func RedactConfig(text []byte) (string, error) {
	file := map[string]any{}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return "", fmt.Errorf("not valid YAML or JSON%s", atLine(err))
	}
	known := globalFields()
	for _, name := range secretFields {
		delete(known, name)
	}
	for key, value := range file {
		global, isObject := value.(map[string]any)
		if !isObject || !strings.EqualFold(key, "Global") {
			file[key] = support.Redacted
			continue
		}
		for name := range global {
			if _, ok := known[strings.ToLower(name)]; !ok {
				global[name] = support.Redacted
			}
		}
	}
	redacted, err := yaml.Marshal(file)
	return string(redacted), err
}

// EventSources are the components that the events of this program name.
func EventSources() []string {
	return []string{serviceEvents, routeEvents, nodeEvents, credentialsEvents, "cloud-node-controller", "cloud-node-lifecycle-controller"}
}
