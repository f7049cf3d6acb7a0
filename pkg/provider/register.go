package provider

import (
	"io"
	"os"

	cloudprovider "k8s.io/cloud-provider"
)

// Name is the provider's name, the value of --cloud-provider.
const Name = "alicloud"

// officialName is what the official CCM calls itself; manifests that move over say it.
const officialName = "alibabacloud"

func init() {
	for _, name := range []string{Name, officialName} {
		cloudprovider.RegisterCloudProvider(name, newFromFile)
	}
}

// newFromFile is the factory that the stock command calls; config is nil without --cloud-config.
func newFromFile(file io.Reader) (cloudprovider.Interface, error) {
	config, err := ReadConfig(file)
	if err != nil {
		return nil, err
	}
	return New(config, EnvironmentFrom(os.Getenv)), nil
}
