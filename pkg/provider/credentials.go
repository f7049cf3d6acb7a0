package provider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// SourceRole is the name of the last source, which is taken where nothing else is set up.
const SourceRole = "RAM role of this instance"

// CredentialsOptions say where keys may come from.
type CredentialsOptions struct {
	Environment Environment
	// Config is the cloud-config. Where it was read from a file, the file is watched.
	Config Config
	// File is a file or directory with keys. It wins over the environment's.
	File string
	// Metadata is the metadata service of this machine.
	Metadata *alicloud.Metadata
	// Region and Endpoints say where STS is reached.
	Region    string
	Endpoints alicloud.Endpoints
	// SessionName shows in the cloud's audit log where the environment names no session: 2 to 32 letters, digits and .@_-. Required.
	SessionName string
}

// Credentials returns the keys of the first source that is set up, and the name of that source as a user knows it: a role
// that is assumed with a service account token, a credentials file, the environment, the cloud-config, the RAM role of this
// instance. A source that is set up but fails does not hand over to the next one: that would act under another identity.
func Credentials(opts CredentialsOptions) (provider alicloud.CredentialsProvider, source string) {
	env, file := opts.Environment, opts.File
	if file == "" {
		file = env.CredentialsFile
	}
	switch {
	case env.Role.configured():
		return opts.assumedRole(), fmt.Sprintf("environment %s, %s, %s", envRoleARN, envProviderARN, envTokenFile)
	case file != "":
		return alicloud.NewFileCredentials(file, env.Profile), fmt.Sprintf("credentials file %s", file)
	case env.Keys.ID != "":
		keys := alicloud.StaticCredentials{AccessKeyID: env.Keys.ID, AccessKeySecret: env.Keys.Secret, SecurityToken: env.Keys.Token}
		return keys, env.Keys.source()
	case opts.Config.AccessKeyID != "":
		return opts.ofConfig(), "Global.accessKeyID, Global.accessKeySecret"
	default:
		return opts.ofConfig(), SourceRole
	}
}

// lastResort is the RAM role, unless that is forbidden.
func (o CredentialsOptions) lastResort() alicloud.Refresher {
	if !o.Environment.RoleDisabled {
		return alicloud.NewRoleCredentials(o.Metadata)
	}
	return alicloud.NewWatchedCredentials("any source", func() (alicloud.Credentials, error) {
		return alicloud.Credentials{}, fmt.Errorf("no key is set, and %s is true, accepted: a key, or %s=false on an instance with a RAM role",
			envRoleDisabled, envRoleDisabled)
	})
}

func (o CredentialsOptions) assumedRole() alicloud.CredentialsProvider {
	role := o.Environment.Role
	return alicloud.NewOIDCCredentials(alicloud.OIDCOptions{
		RoleARN: role.ARN, ProviderARN: role.ProviderARN, TokenFile: role.TokenFile, SessionName: cmp.Or(role.SessionName, o.SessionName),
		Region: o.Region, Endpoints: o.Endpoints,
	})
}

// ofConfig returns the keys of the cloud-config, or the RAM role while it has none.
func (o CredentialsOptions) ofConfig() alicloud.CredentialsProvider {
	started := o.Config
	switch {
	case started.Path == "" && started.AccessKeyID != "":
		return started.keys()
	case started.Path == "":
		return o.lastResort()
	}
	reported := false
	var parsed []byte // the text that keys are from: an idle manager would hardly do anything but parse it again
	var keys alicloud.Credentials
	read := func() (alicloud.Credentials, error) {
		text, err := os.ReadFile(started.Path)
		if err != nil {
			return alicloud.Credentials{}, err
		}
		if parsed != nil && bytes.Equal(text, parsed) {
			return keys, nil
		}
		config, err := ReadConfig(bytes.NewReader(text))
		if err != nil {
			return alicloud.Credentials{}, err
		}
		config.Path = started.Path
		if config.isEmpty() && !started.isEmpty() {
			// A write that was cut off, or a template without its values. Without its key the manager would act as another identity.
			return alicloud.Credentials{}, errors.New("no setting below \"Global\", accepted: an object with the key \"Global\"")
		}
		if changed := started.differsAtStart(config); changed != reported {
			reported = changed
			if changed {
				klog.InfoS("The cloud-config has changed; besides the access key and the pause, changes take effect at the next start", "file",
					started.Path, "unknownFields", config.Unknown)
			}
		}
		parsed, keys = text, alicloud.Credentials(config.keys())
		return keys, nil
	}
	return configCredentials{file: alicloud.NewWatchedCredentials("cloud-config "+started.Path, read), without: o.lastResort()}
}

func (c Config) keys() alicloud.StaticCredentials {
	return alicloud.StaticCredentials{AccessKeyID: c.AccessKeyID, AccessKeySecret: c.AccessKeySecret}
}

// configCredentials are the keys of a cloud-config, which may gain and lose them.
type configCredentials struct {
	file *alicloud.WatchedCredentials
	// without serves while the file has no key.
	without alicloud.Refresher
}

var _ alicloud.Refresher = configCredentials{}

func (c configCredentials) Credentials(ctx context.Context) (alicloud.Credentials, error) {
	keys, err := c.file.Credentials(ctx)
	if err != nil || keys.AccessKeyID != "" {
		return keys, err
	}
	return c.without.Credentials(ctx)
}

func (c configCredentials) Refresh(ctx context.Context, used alicloud.Credentials) (alicloud.Credentials, error) {
	keys, err := c.file.Refresh(ctx, used)
	if err != nil || keys.AccessKeyID != "" {
		return keys, err
	}
	return c.without.Refresh(ctx, used)
}

// OnProblem passes on the problems of [alicloud.WatchedCredentials].
func (c configCredentials) OnProblem(report func(error)) { c.file.OnProblem(report) }

// Try passes on what tries changed keys to [alicloud.WatchedCredentials].
func (c configCredentials) Try(try func(context.Context, alicloud.Credentials) error) {
	c.file.Try(try)
}

// ReadConfigFile reads the cloud-config at path and remembers the path, see [Config.Path].
func ReadConfigFile(path string) (Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return Config{}, err
	}
	defer file.Close()
	return ReadConfig(file)
}
