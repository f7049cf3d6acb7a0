package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
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
	// NodeIPv6 reports the IPv6 addresses of nodes: featureGates with IPv6DualStack=true.
	NodeIPv6 bool
	// TypeAnnotation is the feature gate [annotation.GateLoadBalancerType].
	TypeAnnotation bool
	// BackendSubset is how many nodes are backends of a Service with externalTrafficPolicy Cluster. The official CCM has none.
	BackendSubset backend.Subset
	// IPMode is the mode of the addresses of CLBs, see [annotation.IPMode]. Empty: VIP. The official CCM has none.
	IPMode string
	// DefaultNLB gives Services without a class an NLB. The official CCM gives them a CLB.
	DefaultNLB bool
	// NLBZoneMaps are the zones of new NLBs of Services that name none, as in the annotation. The official CCM has none.
	NLBZoneMaps string
	// Quotas are those of the account, by the codes of the Quota Center. Empty: not known. The official CCM has none.
	Quotas map[string]int
	// DisableQuotaCenter leaves the quotas of the account unread. The official CCM has no such field.
	DisableQuotaCenter bool
	// Policy is what the authors of Services may use of the account. The official CCM has none.
	Policy policy.Policy
	// Endpoints replace the default addresses. The official CCM knows them as environment variables only.
	Endpoints Endpoints
	// Paused keeps the manager from writing to the cloud. The official CCM has no such field. A change takes effect without a restart.
	Paused bool
	// Path is the file that this was read from, "" when it was not a file. The keys in it are watched.
	Path string
	// Unused are the fields that are set and have no effect here.
	Unused []string
	// Unknown are the fields that nobody knows. They have no effect.
	Unknown []string
}

// differsAtStart compares what takes effect at the start only.
func (c Config) differsAtStart(other Config) bool {
	for _, config := range []*Config{&c, &other} {
		config.AccessKeyID, config.AccessKeySecret, config.Paused = "", "", false
	}
	return !reflect.DeepEqual(c, other)
}

// isEmpty reports whether the file sets nothing.
func (c Config) isEmpty() bool {
	c.Path, c.Unknown = "", nil
	empty, err := fileConfig{}.check()
	return err == nil && reflect.DeepEqual(c, empty)
}

// fileConfig is the file as it is written, below "Global". Names are read in any letter case and unknown ones are ignored, as the official
// CCM does.
type fileConfig struct {
	settings
	unused unusedFields
	policy policy.Policy
}

// settings are the fields with an effect, but those of the policy.
type settings struct {
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
	FeatureGates                   string `json:"featureGates"`
	// The rest is ours.
	Paused             bool              `json:"paused"`
	BackendSubset      string            `json:"backendSubset"`
	IPMode             string            `json:"ipMode"`
	DefaultProduct     string            `json:"defaultProduct"`
	NLBZoneMaps        string            `json:"nlbZoneMaps"`
	Quotas             map[string]int    `json:"quotas"`
	DisableQuotaCenter bool              `json:"disableQuotaCenter"`
	Endpoints          map[string]string `json:"endpoints"`
}

// unusedFields are those of the official CCM that have no effect here. They are read for their types: a file that is wrong
// there is as wrong here.
type unusedFields struct {
	ZoneID                       string `json:"zoneid"`
	KubernetesClusterTag         string `json:"kubernetesClusterTag"`
	NodeMaxConcurrentReconciles  int    `json:"nodeMaxConcurrentReconciles"`
	RouteMaxConcurrentReconciles int    `json:"routeMaxConcurrentReconciles"`
	NodeMonitorPeriod            int64  `json:"nodeMonitorPeriod"`
	NodeAddrSyncPeriod           int64  `json:"nodeAddrSyncPeriod"`
	PrivateZoneID                string `json:"privateZoneId"`
	PrivateZoneRecordTTL         int64  `json:"privateZoneRecordTTL"`
}

// set names the fields that are there, as the file spells them.
func (u unusedFields) set() []string {
	var names []string
	fields := reflect.ValueOf(u)
	for i := range fields.NumField() {
		if !fields.Field(i).IsZero() {
			names = append(names, "Global."+fields.Type().Field(i).Tag.Get("json"))
		}
	}
	return names
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
	raw, found, err := decodeFile(text)
	if err != nil {
		return Config{}, err
	}
	config, err := raw.check()
	config.Unknown = found.unknown
	if named, ok := file.(interface{ Name() string }); ok {
		config.Path = named.Name()
	}
	return config, initor.OneLine(found.wrong.err(), err)
}

// decodeFile says where the text is wrong without quoting it: the line may hold a key. Values of a wrong type are left out of the result.
func decodeFile(text []byte) (fileConfig, inspection, error) {
	var raw fileConfig
	file, found, err := inspect(text)
	if err == nil && len(found.wrong) > 0 {
		text, err = json.Marshal(file)
	}
	// One by one: the library turns a number into text where text is expected, but not in embedded structs.
	err = errors.Join(err, decodeGlobal(text, &raw.settings), decodeGlobal(text, &raw.unused), decodeGlobal(text, &raw.policy))
	if err != nil {
		return raw, found, fmt.Errorf("not valid YAML or JSON%s, accepted: an object with the key \"Global\"", atLine(err))
	}
	return raw, found, nil
}

// decodeGlobal reads those fields below "Global" that part has.
func decodeGlobal[T any](text []byte, part *T) error {
	return yaml.Unmarshal(text, &struct{ Global *T }{part})
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
	g := f.settings
	config := Config{
		ClusterID: strings.TrimSpace(g.ClusterID), Region: strings.TrimSpace(g.Region), VPCID: strings.TrimSpace(g.VPCID),
		ResourceGroupID: strings.TrimSpace(g.ResourceGroupID), ServiceWorkers: g.ServiceMaxConcurrentReconciles,
		DisablePublicSLB: g.DisablePublicSLB, RouteTableIDs: splitList(g.RouteTableIDs),
		Endpoints: g.Endpoints, Unused: f.unused.set(), Policy: f.policy, Paused: g.Paused, Quotas: g.Quotas,
		DisableQuotaCenter: g.DisableQuotaCenter,
	}
	if config.Policy.LoadBalancerReuse == yamlOff {
		config.Policy.LoadBalancerReuse = policy.ReuseOff
	}
	var problems problemList
	config.BackendSubset = problems.subset(g.BackendSubset)
	config.IPMode, config.NLBZoneMaps = problems.annotationValue("ipMode", annotation.IPMode,
		g.IPMode), problems.annotationValue("nlbZoneMaps", annotation.ZoneMaps, g.NLBZoneMaps)
	config.DefaultNLB = problems.defaultsToNLB(g.DefaultProduct)
	for _, wrong := range quota.Check(g.Quotas) {
		problems.addf("Global.%s", wrong)
	}
	config.AccessKeyID = problems.decodeKey("accessKeyID", g.AccessKeyID)
	config.AccessKeySecret = problems.decodeKey("accessKeySecret", g.AccessKeySecret)
	if (g.AccessKeyID == "") != (g.AccessKeySecret == "") {
		problems.addf("Global.accessKeyID and Global.accessKeySecret: only one is set, accepted: both or neither")
	}
	if g.UID != "" {
		problems.addf("Global.uid: the value (not shown), accepted: nothing; keys from a token service are not supported")
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
	config.BackendENI = problems.backendENI(g.ServiceBackendType)
	if err := config.Policy.Check(); err != nil {
		for line := range strings.Lines(err.Error()) {
			problems.addf("Global.%s", strings.TrimSpace(line))
		}
	}
	gates := problems.featureGates(g.FeatureGates)
	config.NodeIPv6, config.TypeAnnotation = gates["IPv6DualStack"], gates[annotation.GateLoadBalancerType]
	return config, initor.OneLine(problems.err(), config.Endpoints.check("Global.endpoints.%s", strings.ToLower))
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

// backendENI reports whether pods are the backend servers of Services without the annotation backend-type.
func (p *problemList) backendENI(kind string) bool {
	if kind != "" && kind != "ecs" && kind != "eni" {
		p.addf("Global.serviceBackendType: %q, accepted: \"ecs\" or \"eni\"", kind)
	}
	return kind == "eni"
}

// defaultsToNLB reports whether Services without a class get an NLB.
func (p *problemList) defaultsToNLB(product string) bool {
	if product != "" && product != "clb" && product != "nlb" {
		p.addf("Global.defaultProduct: %q, accepted: \"clb\" or \"nlb\"", product)
	}
	return product == "nlb"
}

// annotationValue returns what a field says that is the default of an annotation, in its normal form.
func (p *problemList) annotationValue(field string, suffix annotation.Suffix, text string) string {
	value, accepted, ok := annotation.DefaultOf(suffix, text)
	if !ok {
		p.addf("Global.%s: %q, accepted: %s", field, text, accepted)
	}
	return value
}

// yamlOff is what the word off becomes in YAML without quotes: a boolean.
const yamlOff = "false"

// decodeKey never shows the value, whether it is good or bad.
func (p *problemList) decodeKey(field, value string) string {
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil || strings.ContainsFunc(string(plain), notInKey) {
		p.addf("Global.%s: the value (not shown) is not the base64 of a key, accepted: the output of: printf %%s KEY | base64", field)
		return ""
	}
	return strings.TrimSpace(string(plain))
}

// acceptedSubset is what [problemList.subset] accepts.
const acceptedSubset = `"auto", "off", or a number of nodes from 1 to 9999`

// subset reads a word or a number, with quotes or without.
func (p *problemList) subset(text string) backend.Subset {
	switch text {
	case "":
		return backend.SubsetAuto
	case yamlOff:
		return backend.SubsetOff
	}
	subset, ok := backend.ParseSubset(text)
	if !ok {
		p.addf("Global.backendSubset: %q, accepted: %s", text, acceptedSubset)
	}
	return subset
}

// notInKey reports characters that no key has. Decoding a plain key as base64 often succeeds, with garbage as the result. A
// trailing newline is tolerated: "echo KEY | base64" leaves one.
func notInKey(r rune) bool {
	return r == unicode.ReplacementChar || (r != '\n' && !unicode.IsPrint(r))
}

func (p *problemList) checkID(field, prefix, id string) {
	if id != "" && !strings.HasPrefix(id, prefix) {
		p.addf("Global.%s: %q, accepted: an id that begins with %q", field, id, prefix)
	}
}

// featureGates reads "A=true,B=false", the form of the official CCM, whose other gates than IPv6DualStack and LoadBalancerTypeAnnotation
// have no meaning here.
func (p *problemList) featureGates(text string) map[string]bool {
	gates := map[string]bool{}
	for _, item := range splitList(text) {
		name, value, _ := strings.Cut(item, "=")
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if err != nil {
			p.addf("Global.featureGates: %q, accepted: \"Gate=true\" or \"Gate=false\", several joined by commas", item)
			continue
		}
		gates[strings.TrimSpace(name)] = on
	}
	return gates
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
