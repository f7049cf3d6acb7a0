package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Config is the content of the cloud-config file, in the format of the official CCM, checked and decoded.
type Config struct {
	// AccessKeyID and AccessKeySecret are both set or both empty. In the file they are base64.
	AccessKeyID, AccessKeySecret string
	// ClusterID ends the names and tags of all cloud resources. Empty: derived, see [Cloud.Connect].
	ClusterID string
	// Region is a region id. Empty: from the metadata service.
	Region string
	// VPCID is the cluster's VPC. Empty: from the metadata service, else from the ECS instance of a node.
	VPCID string
	// VSwitchIDs are the vSwitches for intranet load balancers, in order of preference. Empty: as VPCID.
	VSwitchIDs []string
	// ResourceGroupID is the resource group of new load balancers. Empty: the account's default.
	ResourceGroupID string
	// RouteTableIDs are the route tables that get the pod routes. Empty: the VPC's system table.
	RouteTableIDs []string
	// ServiceWorkers is how many Services are worked on at once. 0: the value of --concurrent-service-syncs.
	ServiceWorkers int
	// DisablePublicSLB refuses internet load balancers.
	DisablePublicSLB bool
	// BackendENI makes pod addresses the default backends, instead of nodes.
	BackendENI bool
}

// fileConfig is the file as it is written. Key names are read in any letter case and unknown keys are ignored, as the
// official CCM does.
type fileConfig struct {
	Global struct {
		AccessKeyID                    string `json:"accessKeyID"`
		AccessKeySecret                string `json:"accessKeySecret"`
		UID                            string `json:"uid"`
		ClusterID                      string `json:"clusterID"`
		Region                         string `json:"region"`
		VPCID                          string `json:"vpcid"`
		VSwitchID                      string `json:"vswitchid"`
		ResourceGroupID                string `json:"resourceGroupID"`
		RouteTableIDs                  string `json:"routeTableIDs"`
		ServiceBackendType             string `json:"serviceBackendType"`
		ServiceMaxConcurrentReconciles int    `json:"serviceMaxConcurrentReconciles"`
		DisablePublicSLB               bool   `json:"disablePublicSLB"`
	} `json:"Global"`
}

// ReadConfig reads a cloud-config file; nil stands for no file and gives an empty Config. The error lists every bad field
// with its value, secrets excepted, and with what is accepted.
func ReadConfig(file io.Reader) (Config, error) {
	if file == nil {
		return Config{}, nil
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return Config{}, fmt.Errorf("read: %w", err)
	}
	raw, err := decodeFile(text)
	if err != nil {
		return Config{}, err
	}
	return raw.check()
}

// decodeFile says where the text is wrong without quoting it: the line may hold a key.
func decodeFile(text []byte) (fileConfig, error) {
	var raw fileConfig
	err := yaml.Unmarshal(text, &raw)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		return raw, fmt.Errorf("%s: is a %s, accepted: a value of type %s", wrongType.Field, wrongType.Value, wrongType.Type)
	case err != nil:
		return raw, fmt.Errorf("not valid YAML or JSON%s, accepted: an object with the key \"Global\"", atLine(err))
	}
	return raw, nil
}

var lineNumber = regexp.MustCompile(`line \d+`)

func atLine(err error) string {
	if line := lineNumber.FindString(err.Error()); line != "" {
		return " (" + line + ")"
	}
	return ""
}

// regionForm is that of all region ids, for example cn-hangzhou, ap-southeast-1, cn-beijing-finance-1.
var regionForm = regexp.MustCompile(`^[a-z]{2,}(-[a-z0-9]+)+$`)

func (f fileConfig) check() (Config, error) {
	g := f.Global
	config := Config{
		ClusterID: strings.TrimSpace(g.ClusterID), Region: strings.TrimSpace(g.Region), VPCID: strings.TrimSpace(g.VPCID),
		ResourceGroupID: strings.TrimSpace(g.ResourceGroupID), ServiceWorkers: g.ServiceMaxConcurrentReconciles,
		DisablePublicSLB: g.DisablePublicSLB, RouteTableIDs: splitList(g.RouteTableIDs),
	}
	var problems problemList
	config.AccessKeyID = problems.decodeKey("accessKeyID", g.AccessKeyID)
	config.AccessKeySecret = problems.decodeKey("accessKeySecret", g.AccessKeySecret)
	if (g.AccessKeyID == "") != (g.AccessKeySecret == "") {
		problems.addf("Global.accessKeyID and Global.accessKeySecret: only one is set, accepted: both or neither")
	}
	if g.UID != "" {
		problems.addf("Global.uid: %q, accepted: nothing; keys from a token service are not supported", g.UID)
	}
	if config.Region != "" && !regionForm.MatchString(config.Region) {
		problems.addf("Global.region: %q, accepted: a region id such as \"cn-hangzhou\"", config.Region)
	}
	problems.checkID("vpcid", "vpc-", config.VPCID)
	for _, id := range config.RouteTableIDs {
		problems.checkID("routeTableIDs", "vtb-", id)
	}
	config.VSwitchIDs = problems.vSwitches(g.VSwitchID)
	if strings.Contains(config.ClusterID, "/") {
		problems.addf("Global.clusterID: %q, accepted: text without \"/\"", config.ClusterID)
	}
	if config.ServiceWorkers < 0 {
		problems.addf("Global.serviceMaxConcurrentReconciles: %d, accepted: 1 or more", config.ServiceWorkers)
	}
	switch g.ServiceBackendType {
	case "", "ecs":
	case "eni":
		config.BackendENI = true
	default:
		problems.addf("Global.serviceBackendType: %q, accepted: \"ecs\" or \"eni\"", g.ServiceBackendType)
	}
	return config, problems.err()
}

// problemList collects what is wrong, so that a user sees all of it at once.
type problemList []string

func (p *problemList) addf(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p *problemList) err() error {
	if len(*p) == 0 {
		return nil
	}
	return errors.New(strings.Join(*p, "; "))
}

// decodeKey never shows the value, whether it is good or bad.
func (p *problemList) decodeKey(field, value string) string {
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil || strings.ContainsFunc(string(plain), notInKey) {
		p.addf("Global.%s: the value (not shown) is not the base64 of a key, accepted: the output of: printf %%s KEY | base64", field)
		return ""
	}
	return strings.TrimSpace(string(plain))
}

// notInKey tells characters that no key has. Decoding a plain key as base64 often succeeds, with garbage as the result. A
// trailing newline is tolerated: "echo KEY | base64" leaves one.
func notInKey(r rune) bool {
	return r == unicode.ReplacementChar || (r != '\n' && !unicode.IsPrint(r))
}

func (p *problemList) checkID(field, prefix, id string) {
	if id != "" && !strings.HasPrefix(id, prefix) {
		p.addf("Global.%s: %q, accepted: an id that begins with %q", field, id, prefix)
	}
}

// vSwitches reads "zone:vsw-1,zone:vsw-2", the older ":vsw-1,:vsw-2" and the bare "vsw-1".
func (p *problemList) vSwitches(text string) []string {
	var ids []string
	for _, item := range splitList(text) {
		id := item
		if _, after, found := strings.Cut(item, ":"); found {
			id = strings.TrimSpace(after)
		}
		if !strings.HasPrefix(id, "vsw-") {
			p.addf("Global.vswitchid: %q, accepted: \"vsw-…\" or \"zone:vsw-…\", several joined by commas", item)
			continue
		}
		ids = append(ids, id)
	}
	return ids
}

func splitList(text string) []string {
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return slices.DeleteFunc(items, func(item string) bool { return item == "" })
}
