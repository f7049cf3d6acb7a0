package render

// KubernetesVersions are those whose schemas testdata holds: the first with the API of admission policies, one between, the sandbox's.
// Without one, helm 3 built from source would take Kubernetes for 1.20.
var KubernetesVersions = []string{"1.30.10", "1.35.2", "1.37.1"}

// Settings are ways to set the chart's values; each must render, and what it renders must be valid everywhere.
var Settings = map[string][]string{
	"routes off":      {"routes.enabled=false", "clusterCIDR="},
	"daemon set":      {"kind=DaemonSet"},
	"daemon set, all": {"kind=DaemonSet", "controlPlaneNodes=ignore"},
	"one replica":     {"replicas=1", "controlPlaneNodes=require"},
	"pod network":     {"hostNetwork=false", "networkPolicy.enabled=true"},
	"policy peers": {"hostNetwork=false", "networkPolicy.enabled=true",
		"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring"},
	"placement": {"nodeSelector.pool=system", "tolerations[0].key=dedicated", "tolerations[0].operator=Exists",
		"priorityClassName=system-node-critical"},
	"images": {"image.repository=registry.example.com/ccm", "image.tag=v9", "image.pullPolicy=Always",
		"imagePullSecrets[0].name=pull"},
	"two families": {`clusterCIDR=10.244.0.0/16\,fd00:10::/56`},
	"secret file":  {"cloudConfig.secretName=cloud-config"},
	"global": {"cloudConfig.global.region=cn-hangzhou", "cloudConfig.global.disablePublicSLB=true",
		"cloudConfig.global.quotas.slb_quota_listeners_num=70", "cloudConfig.global.allowedIDs[0].ids={cert-1}"},
	"global with key": {"cloudConfig.global.region=cn-hangzhou", "credentials.accessKeyID=id", "credentials.accessKeySecret=secret"},
	"key secret":      {"credentials.secretName=key", "credentials.secretIDKey=id", "credentials.secretSecretKey=secret"},
	"rrsa": {"credentials.rrsa.enabled=true", "credentials.rrsa.roleARN=acs:ram::1:role/ccm",
		"credentials.rrsa.oidcProviderARN=acs:ram::1:oidc-provider/k"},
	"endpoints": {"endpoints.ecs=ecs.example.com", "endpoints.slb=slb.example.com:8443", "endpoints.nlb=nlb.example.com",
		"endpoints.vpc=https://vpc.example.com", "endpoints.sts=sts.example.com", "endpoints.metadata=http://10.0.0.1"},
	"extras": {"extraArgs[0]=--v=4", "extraEnv[0].name=HTTPS_PROXY", "extraEnv[0].value=http://proxy:3128", "podLabels.a=b",
		"podAnnotations.c=d", "resources.limits.memory=1Gi"},
	"metrics": {"metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.labels.release=p", "metrics.readers[0].name=prometheus",
		"metrics.readers[0].namespace=monitoring"},
	"certificate": {"metrics.serviceMonitor.enabled=true", "serving.tlsSecretName=ccm-tls"},
	"alerts": {"metrics.prometheusRule.enabled=true", "metrics.prometheusRule.labels.release=p", "metrics.dashboard.enabled=true",
		"metrics.dashboard.labels.team=a"},
	"no policy":      {"admissionPolicy.enabled=false"},
	"warning policy": {"admissionPolicy.action=Warn"},
	"restrictions": {
		"admissionPolicy.restrictions[0].name=a", "admissionPolicy.restrictions[0].namespaceSelector.matchLabels.team=a",
		"admissionPolicy.restrictions[0].annotations={loadbalancer-id,loadbalancer-spec,move}",
		"admissionPolicy.restrictions[1].name=b", "admissionPolicy.restrictions[1].namespaceSelector.matchLabels.team=b",
		"admissionPolicy.restrictions[1].addressTypes={intranet}", "admissionPolicy.restrictions[1].action=Warn",
	},
	"no NLB":      {"nlb.enabled=false"},
	"no budget":   {"podDisruptionBudget.enabled=false"},
	"initializer": {"initializer.enabled=true", "initializer.image.tag=v9"},
	"initializer, jobs": {
		"initializer.enabled=true", "initializer.driver=job", "initializer.nodes={node-1,node-2}",
		"initializer.cloudConfig.configMapName=cloud-config",
		"initializer.extraArgs[0]=--require-ecs",
	},
	"part of another": {"global.imageRegistry=registry.example.com"},
}

// Refused are mistakes; the error must name the value. A mistake in a restriction would let everything pass.
var Refused = []struct {
	Options Options
	Want    []string
}{
	{Options{Set: []string{"clusterCIDR="}}, []string{"clusterCIDR is empty", "10.244.0.0/16"}},
	{Options{Set: []string{"clusterCidr=10.0.0.0/8"}}, []string{"clusterCidr"}},
	{Options{Set: []string{"image.tags=v1"}}, []string{"image", "tags"}},
	{Options{Set: []string{"replicas=0"}}, []string{"replicas", "1"}},
	{Options{Set: []string{"replicas=two"}}, []string{"replicas", "integer"}},
	{Options{Set: []string{"kind=StatefulSet"}}, []string{"kind", "Deployment", "DaemonSet"}},
	{Options{Set: []string{"routes.reconciliationPeriod=often"}}, []string{"routes", "reconciliationPeriod", "often"}},
	{Options{Set: []string{"credentials.accessKeyID=id"}}, []string{"credentials.accessKeySecret", "only one is set"}},
	{Options{Set: []string{"credentials.accessKeyID=id", "credentials.accessKeySecret=s3cr3t"}}, []string{"cloudConfig.global is empty"}},
	{Options{Set: []string{"credentials.secretName=key", "credentials.rrsa.enabled=true"}}, []string{"more than one of"}},
	{Options{Set: []string{"credentials.rrsa.enabled=true"}}, []string{"credentials.rrsa.roleARN", "acs:ram::"}},
	{Options{Set: []string{"credentials.rrsa.roleARN=ccm"}}, []string{"roleARN"}},
	{Options{Set: []string{"cloudConfig.global.accessKeyID=id"}}, []string{"cloudConfig.global.accessKeyID", "credentials.accessKeyID"}},
	{Options{Set: []string{"networkPolicy.enabled=true"}}, []string{"networkPolicy.enabled", "hostNetwork"}},
	{Options{Set: []string{"extraArgs[0]=v=4"}}, []string{"extraArgs"}},
	{Options{Set: []string{"admissionPolicy.action=Refuse"}}, []string{"action", "Deny"}},
	{Options{Set: []string{"metrics.readers[0].name=prometheus"}}, []string{"readers", "namespace"}},
	{Options{KubeVersion: "1.20.0"}, []string{">=1.21.0"}},
	{Options{SetJSON: []string{`admissionPolicy.restrictions=[{"name":"a","namespaceSelector":{}}]`}}, []string{`"a" restricts nothing`}},
	{Options{SetJSON: []string{`admissionPolicy.restrictions=[{"name":"a","namespaceSelector":{},"annotations":["loadbalancer-ids"]}]`}}, []string{`"loadbalancer-ids", which does not exist`}},
	{Options{SetJSON: []string{`admissionPolicy.restrictions=[{"name":"a","annotations":["loadbalancer-id"]}]`}}, []string{"namespaceSelector"}},
	{Options{SetJSON: []string{`admissionPolicy.restrictions=[{"name":"a","namespaceSelector":{},"addressTypes":["private"]}]`}}, []string{"intranet"}},
	{Options{KubeVersion: "1.29.0", SetJSON: []string{`admissionPolicy.restrictions=[{"name":"a","namespaceSelector":{},"annotations":["loadbalancer-id"]}]`}}, []string{"they need 1.30 or later"}},
	{Options{SetJSON: []string{`admissionPolicy.restrictions=[{"name":"a","namespaceSelector":{},"annotation":["loadbalancer-id"]}]`}}, []string{"annotation"}},
}
