package alicloud

import (
	"context"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/responses"
	"k8s.io/klog/v2"
)

// auditedParams are the parameters that say what a call writes to. None of them holds a secret.
var auditedParams = []string{
	"LoadBalancerId", "LoadBalancerName", "VServerGroupId", "ListenerPort", "ListenerProtocol", "AclId", "DomainExtensionId", "ResourceId.1",
	"RouteTableId", "NetworkInterfaceId", "ServerGroupId", "ListenerId", "BackendServers", "OldBackendServers", "NewBackendServers",
}

// WriteMessage is the message of the log line of each write.
const WriteMessage = "Wrote to the cloud"

// maxAudited is how many bytes of a parameter the line has: a call may name 40 backend servers.
const maxAudited = 400

type reasonKey struct{}

// WithReason returns a context whose writes are logged with the reason for them, empty for none.
func WithReason(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, reasonKey{}, reason)
}

// audit writes one line for each call that changed something, or may have: what, where, and the request ID, by which the vendor's own audit
// trail has the call. Who it was for is in the logger of the context. A call that was refused for sure changed nothing; the event or the
// error about it says so.
func audit(ctx context.Context, operation string, in params, out responses.AcsResponse, err error) {
	logger := klog.FromContext(ctx)
	values := []any{"action", operation}
	for _, name := range auditedParams {
		if value := in[name]; value != "" {
			values = append(values, name, value[:min(len(value), maxAudited)])
		}
	}
	if why, _ := ctx.Value(reasonKey{}).(string); why != "" {
		values = append(values, "why", why)
	}
	call, isAnswer := asAPIError(err)
	switch {
	case err == nil:
		id := ""
		if answered, ok := out.(interface{ requestID() string }); ok {
			id = answered.requestID()
		}
		logger.Info(WriteMessage, append(values, "result", "done", "requestID", id)...)
	case isAnswer && call.Code != "" && !IsAmbiguous(err):
		logger.V(2).Info(WriteMessage, append(values, "result", call.Code, "requestID", call.RequestID)...)
	default:
		logger.Info(WriteMessage, append(values, "result", "unknown: "+err.Error())...)
	}
}
