package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// sources returns what is asked for the instance, in order: the flag, or else the metadata service and then ECS. Without a file, ECS
// is asked with the cloud-config that maps has.
func (o *options) sources(maps configMapGetter) ([]initor.Source, error) {
	if o.providerID != "" {
		id, err := node.ParseProviderID(o.providerID)
		if err != nil {
			return nil, fmt.Errorf("--provider-id is %q: %w", o.providerID, err)
		}
		return []initor.Source{initor.Given(id)}, nil
	}
	sources := []initor.Source{initor.NewMetadataSource(alicloud.NewMetadata(o.metadataEndpoint), os.DirFS("/sys"))}
	switch {
	case o.cloudConfig != "":
		ecs, err := ecsSource(o.cloudConfig, o.environment)
		if err != nil {
			return nil, fmt.Errorf("--cloud-config %q: %w", o.cloudConfig, err)
		}
		sources = append(sources, ecs)
	case o.cloudConfigMap != "":
		ecs, err := newConfigMapSource(maps, o.cloudConfigMap, o.environment)
		if err != nil {
			return nil, err
		}
		sources = append(sources, ecs)
	}
	return sources, nil
}

// ecsSource asks ECS as the cloud-config at path and the environment say.
func ecsSource(path string, environment provider.Environment) (*initor.ECSSource, error) {
	config, err := provider.ReadConfigFile(path)
	if err != nil {
		return nil, err
	}
	return ecsSourceOf(config, environment)
}

func ecsSourceOf(config provider.Config, environment provider.Environment) (*initor.ECSSource, error) {
	if err := environment.Check(); err != nil {
		return nil, err
	}
	endpoints := environment.Endpoints.Over(config.Endpoints)
	forClient := endpoints.ForClient("", environment.PlainHTTP)
	keys, source := provider.Credentials(provider.CredentialsOptions{
		Environment: environment, Config: config, Metadata: alicloud.NewMetadata(endpoints["metadata"]),
		Region: config.Region, Endpoints: forClient, SessionName: userAgent,
	})
	// Each is optional for the manager, which has other ways to know. This program has none when it gets here: a RAM role's
	// keys come from the metadata service, too.
	for _, needed := range []struct {
		field string
		known bool
	}{{"region", config.Region != ""}, {"vpcid", config.VPCID != ""}, {"accessKeyID", source != provider.SourceRole}} {
		if !needed.known {
			return nil, fmt.Errorf("Global.%s is empty: it is needed to look instances up by address, and deploy/cloud-config.sh "+
				"writes it; without a cloud-config, only the metadata service is used%s", needed.field, unknownFields(config))
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

// unknownFields names the fields of a cloud-config one of which may be the misspelled one that is missed.
func unknownFields(config provider.Config) string {
	if len(config.Unknown) == 0 {
		return ""
	}
	return "; unknown fields: " + strings.Join(config.Unknown, ", ")
}
