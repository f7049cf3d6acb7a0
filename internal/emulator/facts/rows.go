package facts

// Sources that several facts have.
const (
	pageCommon       = "https://alibabacloud.com/help/en/ram/common-parameters-2"
	pageSignature3   = "https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature"
	pageCLBErrors    = "https://help.aliyun.com/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes"
	pageCLBRates     = "https://help.aliyun.com/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-quota"
	pageCLBLimits    = "https://www.alibabacloud.com/help/en/slb/classic-load-balancer/product-overview/limits-1"
	pageCLBServers   = "https://alibabacloud.com/help/en/slb/api-addvservergroupbackendservers"
	pageCLBListener  = "https://www.alibabacloud.com/help/en/slb/api-createloadbalancertcplistener"
	pageCLBInternet  = "https://alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-modifyloadbalancerinternetspec"
	pageCLBCharge    = "https://alibabacloud.com/help/en/slb/api-modifyloadbalancerinstancechargetype"
	pageCLBSet       = "https://help.aliyun.com/document_detail/2401723.html"
	pageCLBHealth    = "https://www.alibabacloud.com/help/en/slb/classic-load-balancer/user-guide/health-check-overview/"
	pageCLBRemove    = "https://help.aliyun.com/zh/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-removevservergroupbackendservers"
	pageCLBGroup     = "https://help.aliyun.com/document_detail/35221.html"
	pageCLBExtension = "https://help.aliyun.com/document_detail/85913.html"
	pageCLBCert      = "https://help.aliyun.com/zh/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-deleteservercertificate"
	pageCLBACLEntry  = "https://help.aliyun.com/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-addaccesscontrollistentry"
	pageCLBACLDelete = "https://help.aliyun.com/document_detail/70056.htm"
	pageCLBACL       = "https://alibabacloud.com/help/doc-detail/85979.htm"
	pageCCM          = "https://www.alibabacloud.com/help/document_detail/86531.htm"
	pageSLB          = "https://github.com/AlibabaCloudDocs/slb"
	pageNLB          = "https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-overview"
	pageNLBJobs      = "https://help.aliyun.com/zh/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-listasynjobs"
	pageNLBHealth    = "https://www.alibabacloud.com/help/en/slb/network-load-balancer/user-guide/nlb-health-check-overview"
	pageNLBGroups    = "https://www.alibabacloud.com/help/en/slb/network-load-balancer/user-guide/add-an-nlb-instance-to-a-security-group"
	pageRoutes       = "https://www.alibabacloud.com/help/en/vpc/api-createrouteentries"
	pageRoute        = "https://alibabacloud.com/help/en/vpc/api-createrouteentry"
	pageRouteDelete  = "https://www.alibabacloud.com/help/en/vpc/api-deleterouteentry"
	pageRouteList    = "https://www.alibabacloud.com/help/en/vpc/api-describerouteentrylist"
	pageTableDelete  = "https://help.aliyun.com/zh/vpc/api-deleteroutetable"
	pageEIP          = "https://help.aliyun.com/zh/ecs/developer-reference/api-ecs-2014-05-26-unassociateeipaddress"
	pageEIPStates    = "https://alibabacloud.com/help/en/eip/developer-reference/api-120195"
	pageECS          = "https://github.com/AlibabaCloudDocs/ecs"
	pageInstances    = "https://www.alibabacloud.com/help/doc-detail/25506.htm"
	pageECSRates     = "https://www.alibabacloud.com/help/doc-detail/437902.htm"
	pageSecurity     = "https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-authorizesecuritygroup"
	pageQuotas       = "https://www.alibabacloud.com/help/en/quota-center/developer-reference/api-quotas-2020-05-10-listproductquotas"
	pageSTS          = "https://help.aliyun.com/zh/ram/developer-reference/api-sts-2015-04-01-errorcodes"
	codeTerraform    = "github.com/aliyun/terraform-provider-alicloud"
	codeCCM          = "github.com/kubernetes/cloud-provider-alibaba-cloud v2.14.0"
	codeSDK          = "github.com/aliyun/alibaba-cloud-sdk-go"
	sourcesDisagree  = "sources disagree"
	noSource         = ""
	// Products behind the same gateway have tables of errors, which CLB, NLB, VPC and ECS have not.
	pageClientErrors  = "https://www.alibabacloud.com/help/en/auto-scaling/developer-reference/client-errors"
	pageSigningErrors = "https://help.aliyun.com/en/polardb/client-error-codes"
	pageServerErrors  = "https://help.aliyun.com/en/dns/error-code"
	pageTokenErrors   = "https://www.alibabacloud.com/help/doc-detail/42775.htm"
	pageIdempotence   = "https://alibabacloud.com/help/en/doc-detail/25693.html"
	community         = "a post in the vendor's community says so, no page"
)

func on(page string) Source      { return Source{Documented, page} }
func code(program string) Source { return Source{FromCode, program} }

// assumed is for what has no source; reason says what is known instead, or "".
func assumed(reason string) Source { return Source{Assumed, reason} }

// option changes a row of a table.
type option func(*Fact)

func by(actions ...string) option { return func(f *Fact) { f.Actions = actions } }

// status flips a refusal to another status, which other sources name.
func status(n int) option { return func(f *Fact) { f.FlipStatus = n } }

// as flips a refusal to another code.
func as(code string) option { return func(f *Fact) { f.FlipCode = code } }

// with flips a fact by a switch of its own.
func with(settings string) option { return func(f *Fact) { f.Settings = settings } }

// setting names the setting that a fact is about.
func setting(name string) option { return func(f *Fact) { f.Setting = name } }

// transient marks a refusal that ends by itself.
func transient(f *Fact) { f.Transient = true }

func checked(c Check) option { return func(f *Fact) { f.Check = c } }

var (
	provoked = checked(Provoked)
	account  = checked(Account)
	byClock  = checked(Clock)
	traffic  = checked(Traffic)
	inTime   = checked(Time)
)

// refuse makes a fact about a refusal; its id is the code.
func refuse(product, code string, status int, source Source, when string, options ...option) Fact {
	f := Fact{ID: product + "." + code, Product: product, Statement: when, Source: source, Code: code, Status: status}
	for _, change := range options {
		change(&f)
	}
	return f
}

// named gives a fact an id that is not its code, which another fact has.
func named(id string) option { return func(f *Fact) { f.ID = id } }

// behave makes a fact about anything else.
func behave(product, name string, source Source, statement string, options ...option) Fact {
	f := Fact{ID: product + "." + name, Product: product, Statement: statement, Source: source}
	for _, change := range options {
		change(&f)
	}
	return f
}
