package main

import (
	"fmt"
	"os"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// sources returns what is asked for the instance, in order: the metadata service, then ECS if there is a cloud-config.
func (o *options) sources() ([]initor.Source, error) {
	sources := []initor.Source{initor.NewMetadataSource(alicloud.NewMetadata(o.metadataEndpoint), os.DirFS("/sys"))}
	if o.cloudConfig == "" {
		return sources, nil
	}
	ecs, err := o.ecsSource()
	if err != nil {
		return nil, fmt.Errorf("--cloud-config %q: %w", o.cloudConfig, err)
	}
	return append(sources, ecs), nil
}

func (o *options) ecsSource() (*initor.ECSSource, error) {
	return ecsSource(o.cloudConfig, o.environment)
}

// ecsSource asks ECS as the cloud-config at path and the environment say.
func ecsSource(path string, environment provider.Environment) (*initor.ECSSource, error) {
	config, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	if err = environment.Check(); err != nil {
		return nil, err
	}
	endpoints := environment.Endpoints.Over(config.Endpoints)
	forClient := endpoints.ForClient("", environment.PlainHTTP)
	keys, source := provider.Credentials(provider.CredentialsOptions{
		Environment: environment, Config: config, Metadata: alicloud.NewMetadata(endpoints["metadata"]),
		Region: config.Region, Endpoints: forClient,
	})
	// Each is optional for the manager, which has other ways to know. This program has none when it gets here: a RAM role's
	// keys come from the metadata service, too.
	for _, needed := range []struct {
		field string
		known bool
	}{{"region", config.Region != ""}, {"vpcid", config.VPCID != ""}, {"accessKeyID", source != provider.SourceRole}} {
		if !needed.known {
			return nil, fmt.Errorf("Global.%s is empty: it is needed to look instances up by address; without --cloud-config "+
				"only the metadata service is asked", needed.field)
		}
	}
	client, err := alicloud.New(alicloud.Options{
		Region: config.Region, Credentials: keys, Endpoints: forClient, UserAgent: userAgent,
	})
	if err != nil {
		return nil, err
	}
	return initor.NewECSSource(client, config.VPCID)
}

func readConfig(path string) (provider.Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return provider.Config{}, err
	}
	defer file.Close()
	return provider.ReadConfig(file)
}
