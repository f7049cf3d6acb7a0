package provider

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"

// Environment holds the settings that come from environment variables, by the official CCM's names.
type Environment struct {
	// AccessKeyID and AccessKeySecret (ACCESS_KEY_ID, ACCESS_KEY_SECRET) are plain. They win over those of the file.
	AccessKeyID, AccessKeySecret string
	// Endpoints: SLB_ENDPOINT, VPC_ENDPOINT and ECS_ENDPOINT ("host:port" or a URL) and ALICLOUD_CLIENT_SCHEME ("HTTP"
	// for plain HTTP).
	Endpoints alicloud.Endpoints
	// MetadataEndpoint (METADATA_ENDPOINT) is the base URL of the metadata service.
	MetadataEndpoint string
	// BackendENI (SERVICE_FORCE_BACKEND_ENI=true) makes pod addresses the default backends.
	BackendENI bool
}

// EnvironmentFrom reads the environment through getenv, usually [os.Getenv].
func EnvironmentFrom(getenv func(string) string) Environment {
	return Environment{
		AccessKeyID:     getenv("ACCESS_KEY_ID"),
		AccessKeySecret: getenv("ACCESS_KEY_SECRET"),
		Endpoints: alicloud.Endpoints{
			SLB: getenv("SLB_ENDPOINT"), VPC: getenv("VPC_ENDPOINT"), ECS: getenv("ECS_ENDPOINT"),
			PlainHTTP: getenv("ALICLOUD_CLIENT_SCHEME") == "HTTP",
		},
		MetadataEndpoint: getenv("METADATA_ENDPOINT"),
		BackendENI:       getenv("SERVICE_FORCE_BACKEND_ENI") == "true",
	}
}

// credentials picks the source of the keys: environment, then file, then the RAM role of this instance.
func (e Environment) credentials(config Config, metadata *alicloud.Metadata) alicloud.CredentialsProvider {
	switch {
	case e.AccessKeyID != "" && e.AccessKeySecret != "":
		return alicloud.StaticCredentials{AccessKeyID: e.AccessKeyID, AccessKeySecret: e.AccessKeySecret}
	case config.AccessKeyID != "":
		return alicloud.StaticCredentials{AccessKeyID: config.AccessKeyID, AccessKeySecret: config.AccessKeySecret}
	default:
		return alicloud.NewRoleCredentials(metadata)
	}
}
