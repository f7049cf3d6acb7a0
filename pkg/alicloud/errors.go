package alicloud

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Error is a failed OpenAPI call. It never holds a key, a token or a signed text.
type Error struct {
	// Product is the RAM name of the product, for example "slb". Empty where the call is no subject of RAM policies.
	Product string
	// Action is the OpenAPI action, for example "CreateLoadBalancer".
	Action string
	// Code is the cloud's error code, for example "Throttling.User". Empty when no answer arrived, and when what arrived is not an
	// answer to the call: it has no RequestId, is about another resource, or lacks a part of a list.
	Code string
	// Status is the HTTP status of what arrived, 0 when nothing did.
	Status int
	// RequestID identifies the call to the vendor's support. Empty when no answer of the API arrived.
	RequestID string
	// Message is the cloud's text.
	Message string

	err error
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Code == "" && e.RequestID != "":
		return fmt.Sprintf("%s: unusable answer: %s (request %s)", e.Action, cloudText(e.err.Error()), e.RequestID)
	case e.Code == "":
		return fmt.Sprintf("%s: no answer: %s", e.Action, cloudText(fmt.Sprint(e.err)))
	}
	return fmt.Sprintf("%s: %s: %s (HTTP %d, request %s)%s", e.Action, e.Code, e.Message, e.Status, e.RequestID, e.advice())
}

// maxText bounds each text of the cloud that ends in an error. Real ones have some hundred bytes.
const maxText = 1 << 10

// cloudText returns a text of the cloud as it may stand in a log line, an event or a condition: bounded, and with control characters
// quoted. A proxy or a broken endpoint may send megabytes, line breaks that begin a line of their own, or sequences that act on the
// terminal of whoever reads the log.
func cloudText(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		quoted := strconv.Quote(text)
		text = quoted[1 : len(quoted)-1]
	}
	return text
}

// Lasting is the text of an error without what differs each time that the cloud answers the same.
func Lasting(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*Error](err); ok && e.RequestID != "" {
		text = strings.Replace(text, ", request "+e.RequestID, "", 1)
	}
	if e, ok := errors.AsType[*JobError](err); ok {
		text = strings.Replace(text, e.Error(), e.Text, 1)
	}
	return text
}

// JobError says that a job did not do what it was to do.
type JobError struct {
	Job Job
	// Op is what it was to do, and Text the same of what, and what came of it.
	Op, Text string
}

// Error implements error.
func (e *JobError) Error() string { return fmt.Sprintf("%s (job %s)", e.Text, e.Job) }

// Unwrap returns what kept the answer from arriving, for example a context error.
func (e *Error) Unwrap() error { return e.err }

// codeListenerStatus refuses to start a listener that is not stopped, also one that runs.
const codeListenerStatus = "OperationFailed.ListenerStatusNotSupport"

// The tables below hold the documented codes, misspelled ones as they are really returned. Sources: the error pages of
// https://www.alibabacloud.com/help/en/slb, …/vpc, …/ecs and …/ram.
var (
	signatureCodes = sets.New("SignatureDoesNotMatch", "IncompleteSignature")

	authCodes = sets.New(
		"InvalidAccessKeyId.NotFound", "InvalidAccessKeyId.Inactive", "SignatureDoesNotMatch", "MissingSecurityToken",
		"InvalidSecurityToken.Expired", "InvalidSecurityToken.Malformed", "InvalidSecurityToken.MismatchWithAccessKey",
		"InvalidTimeStamp.Expired", "InvalidTimeStamp.Format", "IllegalTimestamp",
	)

	// staleKeyCodes are the codes with which the cloud refuses a key that has expired or was withdrawn. Its source may have another one.
	staleKeyCodes = sets.New(
		"InvalidSecurityToken.Expired", "InvalidSecurityToken.Malformed", "InvalidSecurityToken.MismatchWithAccessKey",
		"InvalidAccessKeyId.NotFound", "InvalidAccessKeyId.Inactive",
	)

	forbiddenCodes = sets.New("Forbidden", "Forbidden.RAM", "Forbidden.RiskControl", "Forbbiden.SubUser", "Forbidden.NoPermission",
		"NoPermission")

	notFoundCodes = sets.New(
		"InvalidLoadBalancerId.NotFound", "ListenerNotFound", "CheckedListenerNotFound", "ResourceNotFound.VServerGroup",
		"InvalidRouteEntry.NotFound", "InvalidRouteEntryId.NotFound", "VPC_ROUTER_ENTRY_NOT_EXIST",
		"InvalidRouteTableId.NotFound", "InvalidRouteTable.NotFound", "InvalidVpcId.NotFound",
		"InvalidInstanceId.NotFound", "InvalidAllocationId.NotFound", "AclNotExist", "InvalidSecurityGroupId.NotFound",
	)

	busyCodes = sets.New(
		"ListenerProcessing", codeListenerStatus, "ServiceIsStopping", "BackendServer.configuring",
		"ServiceIsConfiguring", "VServerGroupProcessing", "OperationBusy", "ProcessingSameRequest",
		"OperationFailed.ServiceGroupProcessing", "SystemBusy", "VpcSystemBusy", "RspoolVipExist",
		"TaskConflict", "IncorrectRouteEntryStatus", "IncorrcetRouteEntryStatus", "IncorrectVpcStatus",
		"IncorrectInstanceStatus", "IncorrectStatus.VpcRouteEntry", "IncorrectStatus.RouteTableStatus",
		"IncorrectVSwitchStatus", "OperationFailed.DistibuteLock", "OperationConflict", "LastTokenProcessing",
		"VPC_ROUTE_ENTRY_STATUS_ERROR", "InvalidOperation.Conflict", "DependencyViolation",
		"DomainExtensionProcessing", "IncorrectStatus.DomainExtension",
	)

	quotaCodes = sets.New(
		"ListenerNumberOverLimit", "VipTooManyListeners", "InstanceBackendServerNumberOverLimit", "OverQuota",
		"ORDER.QUOTA_EXCEEDED", "ORDER.QUANTITY_INVALID", "TooManyBackendServers", "VSwitchAvailableIpNotExist", "AuthorizationLimitExceed",
	)

	// lockedCodes say that a load balancer takes no change, because it is locked (arrears, or by the vendor) or was stopped.
	lockedCodes = sets.New("ActionNotAllowed", "LbStatusNotSupport", "OperationDenied.LoadBalancerLocked")

	// quotaFamilies are codes that may name the quota behind a dot, for example QuotaLimitExceeds.TotalAclEntry.
	quotaFamilies = []string{"QuotaExceeded", "QuotaLimitExceeds"}

	duplicateCodes = sets.New(
		"ListenerAlreadyExists", "InvalidCIDRBlock.Duplicate", "InvalidRouteEntry.Duplicate",
		"RouterEntryConflict.Duplicated", "VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE", "Duplicated.VpcNextHop",
	)

	ambiguousCodes = sets.New("ServiceUnavailable", "InternalError", "SignatureNonceUsed").Union(tokenReusedCodes)

	tokenReusedCodes = sets.New("LX_REQUEST_TOKEN_CONFLICT", "IdempotentParameterMismatch")
)

// vServerGroupGone is the one answer that its code alone does not identify: an unknown vServer group is an
// "InvalidParameter" with status 404 (every other InvalidParameter has 400).
func vServerGroupGone(e *Error) bool {
	return e.Code == "InvalidParameter" && e.Status == http.StatusNotFound
}

// IsNotFound reports whether the cloud answered that there is no such resource.
func IsNotFound(err error) bool {
	e, ok := asAPIError(err)
	return ok && (notFoundCodes.Has(e.Code) || hasNLBCode(e, nlbNotFoundCodes) || vServerGroupGone(e))
}

// IsBusy reports whether the resource is in transition: the call was refused, changed nothing, and may be repeated after
// a few seconds.
func IsBusy(err error) bool {
	e, ok := asAPIError(err)
	return ok && (busyCodes.Has(e.Code) || isNLBBusy(e))
}

// ThrottledFor is the length of the window whose end opens a throttled action again, a minute where that is not known. Windows begin with
// the minute or the second.
func ThrottledFor(err error) time.Duration {
	e, ok := asAPIError(err)
	if !ok {
		return time.Minute
	}
	action := e.Action
	if e.Product == productNLB.host {
		action = productNLB.host + operationSeparator + action
	}
	return (&limiter{quotas: publishedQuotas}).quota(action).window
}

// IsThrottled reports whether the action's rate was exceeded: nothing was changed, and the action stays closed until its
// next window begins, see [ThrottledFor].
func IsThrottled(err error) bool {
	e, ok := asAPIError(err)
	return ok && e.isThrottled()
}

func (e *Error) isThrottled() bool {
	return e.Code == "Throttling" || strings.HasPrefix(e.Code, "Throttling.")
}

// IsQuota reports whether a quota of the account or of the resource is used up.
func IsQuota(err error) bool {
	e, ok := asAPIError(err)
	return ok && (quotaCodes.Has(e.Code) || slices.ContainsFunc(quotaFamilies, func(family string) bool {
		return e.Code == family || strings.HasPrefix(e.Code, family+".")
	}))
}

// IsDuplicate reports whether what the call should create is there already, made by whomever.
func IsDuplicate(err error) bool {
	e, ok := asAPIError(err)
	return ok && (duplicateCodes.Has(e.Code) || hasNLBCode(e, nlbDuplicateCodes))
}

// IsLocked reports whether the load balancer takes no change at all: whatever a call asks for is not the reason.
func IsLocked(err error) bool { return hasCode(err, lockedCodes) }

// IsAuth reports whether the access key, its signature or the clock that signed was refused. It says nothing about any resource.
func IsAuth(err error) bool { return hasCode(err, authCodes) }

// IsForbidden reports whether the access key lacks a permission. It says nothing about any resource.
func IsForbidden(err error) bool { return hasCode(err, forbiddenCodes) }

// badRequestStatuses are those with which a server turns down a request before it looks at what it asks for: malformed, or longer than it
// reads. Usual limits are 8 to 32 kB, and the parameters of a call are part of its URL.
var badRequestStatuses = sets.New(
	http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge,
)

// isBadRequest reports whether a server on the way refused the call without reading it, as too long or malformed: nothing was changed,
// the same call ends alike each time, and one with fewer or other parameters may not.
func (e *Error) isBadRequest() bool {
	return e.Code == "" && e.RequestID == "" && badRequestStatuses.Has(e.Status)
}

// IsRefusedParameter reports whether a call was refused for what it asks, and not for who asks, when, or how often: with fewer parameters
// it may succeed.
func IsRefusedParameter(err error) bool {
	_, ok := asAPIError(err)
	return ok && !IsThrottled(err) && !IsBusy(err) && !IsAuth(err) && !IsForbidden(err) && !IsQuota(err) && !IsAmbiguous(err)
}

// IsAmbiguous reports whether a write may or may not have happened: no answer arrived, or one that does not say so. The state
// must be read before the write is repeated. A read with such an error says nothing about any resource.
func IsAmbiguous(err error) bool {
	e, ok := asAPIError(err)
	return ok && e.isAmbiguous()
}

func (e *Error) isAmbiguous() bool {
	if e.isBadRequest() {
		return false
	}
	return e.Code == "" || ambiguousCodes.Has(e.Code) || hasNLBCode(e, nlbAmbiguousCodes) || e.Status >= http.StatusInternalServerError
}

// HasCode reports whether err is an [Error] with one of the codes.
func HasCode(err error, codes ...string) bool { return hasCode(err, sets.New(codes...)) }

func hasCode(err error, codes sets.Set[string]) bool {
	e, ok := asAPIError(err)
	return ok && codes.Has(e.Code)
}

// asAPIError leaves out what STS answered to a request for keys: the call itself was then never made.
func asAPIError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e) && !IsNoCredentials(err)
	return e, ok
}
