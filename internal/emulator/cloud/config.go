package cloud

import (
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/yaml"
)

// Config is what exists when the emulator starts. Field names in the file are those of the json tags.
type Config struct {
	Region    string `json:"region"`
	AccountID string `json:"accountId,omitempty"`
	// Preset names the limits: published (documents) or observed (what clients rely on). Default observed.
	Preset string `json:"preset,omitempty"`
	// Quotas replace single limits of the preset; 0 keeps the preset's.
	Quotas        Limits              `json:"quotas,omitempty"`
	VPCs          []VPCConfig         `json:"vpcs"`
	VSwitches     []VSwitchConfig     `json:"vSwitches"`
	RouteTables   []RouteTableConfig  `json:"routeTables"`
	Instances     []InstanceConfig    `json:"instances,omitempty"`
	AccessKeys    []AccessKeyConfig   `json:"accessKeys"`
	Roles         []RoleConfig        `json:"roles,omitempty"`
	OIDCProviders []OIDCConfig        `json:"oidcProviders,omitempty"`
	Certificates  []CertificateConfig `json:"certificates,omitempty"`
	// BandwidthPackages and SecurityPolicies are ids of bandwidth packages, and of TLS cipher policies of the user's, that NLBs may have.
	BandwidthPackages []string    `json:"bandwidthPackages,omitempty"`
	SecurityPolicies  []string    `json:"securityPolicies,omitempty"`
	ACLs              []ACLConfig `json:"acls,omitempty"`
	Switches
	// RateLimits replace or add quotas of single actions, by "product:Action". They hold with --rate-limits off, too.
	RateLimits map[string]RateLimitConfig `json:"rateLimits,omitempty"`
	// Statuses are the HTTP statuses of codes about which sources disagree; 0 keeps the default.
	Statuses StatusConfig `json:"statuses,omitempty"`
}

// VPCConfig is one VPC.
type VPCConfig struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	CIDR string `json:"cidr"`
	// IPv6CIDR, a /56, switches IPv6 on.
	IPv6CIDR string `json:"ipv6Cidr,omitempty"`
}

// VSwitchConfig is one vSwitch.
type VSwitchConfig struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	VPCID string `json:"vpcId"`
	Zone  string `json:"zoneId"`
	CIDR  string `json:"cidr"`
	// IPv6CIDR, a /64 of the VPC's, gives the vSwitch IPv6.
	IPv6CIDR string `json:"ipv6Cidr,omitempty"`
	// RouteTableID defaults to the VPC's system table.
	RouteTableID string `json:"routeTableId,omitempty"`
}

// RouteTableConfig is one route table. The first table of a VPC is its system table.
type RouteTableConfig struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	VPCID string `json:"vpcId"`
	// LearnedRoutes are entries that the cloud makes by itself, of a CEN or a border router. Nobody can delete them.
	LearnedRoutes []LearnedRouteConfig `json:"learnedRoutes,omitempty"`
}

// LearnedRouteConfig is one entry that a table has learned.
type LearnedRouteConfig struct {
	CIDR string `json:"cidr"`
	// Type is "CEN" or "BGP".
	Type    string `json:"type"`
	NextHop string `json:"nextHop"`
}

// InstanceConfig is one instance.
type InstanceConfig struct {
	ID              string            `json:"id"`
	Name            string            `json:"name,omitempty"`
	Type            string            `json:"instanceType,omitempty"`
	VSwitchID       string            `json:"vSwitchId,omitempty"`
	PrivateIP       string            `json:"privateIp,omitempty"`
	RAMRole         string            `json:"ramRole,omitempty"`
	IPv6s           []string          `json:"ipv6Addresses,omitempty"`
	Status          string            `json:"status,omitempty"`
	HTTPTokens      string            `json:"httpTokens,omitempty"`
	HTTPEndpoint    string            `json:"httpEndpoint,omitempty"`
	SourceDestCheck bool              `json:"sourceDestCheck,omitempty"`
	Tags            map[string]string `json:"tags,omitempty"`
}

// AccessKeyConfig is one access key of the account.
type AccessKeyConfig struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
	// Permissions are allowed actions in RAM form: slb:*, ecs:DescribeInstances, vpc:Describe*. Empty allows everything.
	Permissions []string `json:"permissions,omitempty"`
	Disabled    bool     `json:"disabled,omitempty"`
}

// RoleConfig is one RAM role.
type RoleConfig struct {
	Name        string   `json:"name"`
	Permissions []string `json:"permissions,omitempty"`
	// MaxSession is MaxSessionDuration in seconds, default 3600.
	MaxSession int `json:"maxSessionDuration,omitempty"`
	// OIDCProviders are the names of the providers whose tokens may assume the role; empty = every one.
	OIDCProviders []string `json:"oidcProviders,omitempty"`
	// Subjects restrict the sub claim; empty = every one.
	Subjects []string `json:"subjects,omitempty"`
}

// OIDCConfig is one registered OIDC provider.
type OIDCConfig struct {
	Name string `json:"name"`
	// Issuer is compared with the token's iss claim when set.
	Issuer string `json:"issuer,omitempty"`
	// ClientIDs are the accepted audiences.
	ClientIDs []string `json:"clientIds"`
	// Keys are public keys in PEM form; without them the token's signature is not checked.
	Keys []string `json:"keys,omitempty"`
}

// CertificateConfig is one certificate. Without PEM texts it can be named, but not serve TLS.
type CertificateConfig struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// CA marks the certificate of an authority, which has no private key.
	CA          bool   `json:"ca,omitempty"`
	Certificate string `json:"certificate,omitempty"`
	PrivateKey  string `json:"privateKey,omitempty"`
	CommonName  string `json:"commonName,omitempty"`
	// Expires is when a certificate without PEM texts expires, for example 2027-01-02T15:04:05Z. Default: in a year.
	Expires time.Time `json:"expires,omitzero"`
}

// ACLConfig is one access control list with its address blocks.
type ACLConfig struct {
	ID        string   `json:"id"`
	Name      string   `json:"name,omitempty"`
	IPVersion string   `json:"ipVersion,omitempty"`
	Entries   []string `json:"entries,omitempty"`
}

// RateLimitConfig is how many calls of one action a fixed window admits.
type RateLimitConfig struct {
	Calls int `json:"calls"`
	// Seconds is the length of the window, default 60.
	Seconds int `json:"seconds,omitempty"`
}

// StatusConfig are switches for disputed HTTP statuses.
type StatusConfig struct {
	InvalidAccessKey  int `json:"invalidAccessKeyIdNotFound,omitempty"`
	SignatureMismatch int `json:"signatureDoesNotMatch,omitempty"`
}

// DefaultConfig is what stands without --config.
func DefaultConfig() *Config {
	return &Config{
		Region: "cn-hangzhou",
		VPCs:   []VPCConfig{{ID: "vpc-emulator", Name: "emulator", CIDR: "10.0.0.0/8"}},
		VSwitches: []VSwitchConfig{
			{ID: "vsw-a", VPCID: "vpc-emulator", Zone: "cn-hangzhou-a", CIDR: "10.1.0.0/16"},
			{ID: "vsw-b", VPCID: "vpc-emulator", Zone: "cn-hangzhou-b", CIDR: "10.2.0.0/16"},
		},
		RouteTables:   []RouteTableConfig{{ID: "vtb-emulator", VPCID: "vpc-emulator"}},
		AccessKeys:    []AccessKeyConfig{{ID: "emulator", Secret: "emulator-secret"}},
		Roles:         []RoleConfig{{Name: "emulator-role"}},
		OIDCProviders: []OIDCConfig{{Name: "emulator", ClientIDs: []string{"sts.aliyuncs.com"}}},

		BandwidthPackages: []string{"cbwp-1", "cbwp-2", "cbwp-conformance"},
		SecurityPolicies:  []string{"tls-emulator"},
	}
}

// LoadConfig reads a configuration file. Unknown fields are errors: a misspelled one would silently mean the default.
func LoadConfig(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read emulator config: %w", err)
	}
	c, err := ReadConfig(data)
	if err != nil {
		return nil, fmt.Errorf("emulator config %s: %w", path, err)
	}
	return c, nil
}

// ReadConfig reads a configuration in YAML or JSON, see [LoadConfig].
func ReadConfig(text []byte) (*Config, error) {
	c := &Config{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, explain(err)
	}
	return c, nil
}

// limits are the preset's, with the configured ones in their place.
func (c *Config) limits() Limits {
	l := Observed()
	if c.Preset == "published" {
		l = Published()
	}
	return l.replacedBy(c.Quotas)
}
