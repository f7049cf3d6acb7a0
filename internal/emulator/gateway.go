package emulator

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/faults"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/journal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// exchange is one OpenAPI request on its way through the gateway.
type exchange struct {
	request *rpc.Request
	product string
	action  *api.Action
	call    *api.Call
	// host and now are one moment by the clock of the host, by which callers sign, and by that of the cloud.
	host, now time.Time
	fault     faults.Outcome
	// entry is what the journal will say.
	entry journal.Call
}

// serveOpenAPI carries out one request. The journal is written before the answer is sent, so that a caller who has its
// answer finds its call there.
func (e *Emulator) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	x := &exchange{}
	e.readClocks(x)
	x.entry.Time, x.entry.RequestID = x.now.UTC(), requestID()
	answer := e.answer(x, r)
	x.entry.Status, x.entry.Dropped = answer.Status, string(x.fault.Drop)
	if err := e.journal.Add(x.entry); err != nil {
		http.Error(w, fmt.Sprintf("write the journal: %v", err), http.StatusInternalServerError)
		return
	}
	if x.fault.Drop != "" {
		// The server closes the connection without an answer.
		panic(http.ErrAbortHandler)
	}
	answer.Write(w)
}

// readClocks notes the time. Reading both clocks at once keeps a signature fresh when the clock of the cloud is set forward meanwhile.
func (e *Emulator) readClocks(x *exchange) {
	x.host = time.Now()
	x.now = x.host.Add(e.store.Ahead())
}

// answer takes a request through the steps of the cloud's gateway and encodes what comes out.
func (e *Emulator) answer(x *exchange, r *http.Request) rpc.Answer {
	result, err := e.process(x, r)
	format := e.formatOf(x)
	answer, encodeErr := rpc.Success(x.entry.Action, x.entry.RequestID, format, result)
	if encodeErr != nil {
		err = api.Errorf(http.StatusInternalServerError, "InternalError", "%v", encodeErr)
	}
	if err == nil {
		e.meetAnswer(x, &answer)
	}
	if err != nil {
		err = e.meetRefusal(x, err)
		x.entry.Code = err.Code
		answer = rpc.Failure(err, x.entry.RequestID, x.hostID(), format)
	}
	if x.fault.Body != nil {
		answer.Body = []byte(*x.fault.Body)
	}
	return answer
}

func (x *exchange) format() rpc.Format {
	if x.request == nil {
		return rpc.XML
	}
	return x.request.Format()
}

func (x *exchange) hostID() string {
	if x.product == "" {
		return "emulator.aliyuncs.com"
	}
	return x.product + ".aliyuncs.com"
}

// process is the gateway: read, resolve, authenticate, authorize, inject faults, count, validate, run. An injected error
// comes before the rate window, which it must not use up.
func (e *Emulator) process(x *exchange, r *http.Request) (any, *api.Error) {
	request, bad := rpc.Read(r)
	if bad != nil {
		return nil, bad
	}
	x.request = request
	e.readClocks(x) // the body may have taken its time
	resolveErr := e.resolve(x)
	x.record()
	if bad = e.authenticate(x); bad != nil {
		return nil, bad
	}
	if resolveErr != nil {
		return nil, resolveErr
	}
	denied, bad := e.authorize(x)
	if bad != nil {
		return nil, bad
	}
	x.fault = e.faults.Next(x.product, x.action.Name, x.action.Kind)
	switch {
	case x.fault.Drop == faults.DropBefore && x.fault.Body != nil:
		// Somebody between the caller and the cloud answers in the cloud's place.
		x.fault.Drop = ""
		e.wait(x.fault.Latency)
		return nil, nil
	case x.fault.Drop == faults.DropBefore:
		e.wait(x.fault.Latency)
		return nil, api.Errorf(0, "", "")
	case x.fault.Error != nil:
		e.wait(e.options.Latency + x.fault.Latency)
		return nil, x.fault.Error
	}
	if bad = e.windows.Admit(x.product, x.action.Name, x.action.Kind, x.now); bad != nil {
		return nil, bad
	}
	x.call = e.newCall(x, denied)
	if bad = e.validate(x.call); bad != nil {
		return nil, bad
	}
	result, bad := e.run(x.call, e.options.Latency+x.fault.Latency)
	x.entry.Hidden, x.entry.Facts = x.call.Hidden, append(x.entry.Facts, x.call.Met...)
	return result, bad
}

// resolve finds the product (path prefix, else API version) and the action.
func (e *Emulator) resolve(x *exchange) *api.Error {
	name := x.request.Action()
	x.entry.Action = name
	product, ok := e.table.ByName(x.request.Product)
	if x.request.Product == "" {
		product, ok = e.table.ByVersion(x.request.Version())
	}
	if !ok && x.request.Product != "" {
		return api.NotFound("InvalidAction.NotFound", "No API is served at the path /%s.", x.request.Product)
	}
	if !ok || product.Version != x.request.Version() {
		return api.BadRequest("NoSuchVersion", "Specified parameter Version is not valid: %q.", x.request.Version())
	}
	x.product, x.entry.Product = product.Name, product.Name
	if name == "" {
		return api.Missing("Action")
	}
	if x.action = e.table.Find(product.Name, name); x.action == nil {
		x.entry.Kind = guessKind(name)
		return api.BadRequest("UnsupportedOperation", "The emulator does not implement the action %s of %s.", name, product.Name)
	}
	x.entry.Kind = x.action.Kind
	return nil
}

// guessKind keeps the journal's count of reads and writes right for actions that the table does not have.
func guessKind(action string) api.Kind {
	for _, prefix := range []string{"Describe", "List", "Get", "Check", "Query"} {
		if strings.HasPrefix(action, prefix) {
			return api.Read
		}
	}
	return api.Write
}

// protocolParams are left out of the journal: they are the transport's, and some are secrets.
var protocolParams = []string{
	"AccessKeyId", "Action", "Version", "Format", "Signature", "SignatureMethod", "SignatureNonce", "SignatureType",
	"SignatureVersion", "Timestamp", "SecurityToken",
}

// secretParams are named in the journal, but not shown.
var secretParams = []string{"OIDCToken", "PrivateKey", "UserData"}

func (x *exchange) record() {
	p := maps.Clone(x.request.Params)
	for _, name := range protocolParams {
		delete(p, name)
	}
	for _, name := range secretParams {
		if p[name] != "" {
			p[name] = "***"
		}
	}
	x.entry.Parameters = p
}

func (e *Emulator) authenticate(x *exchange) *api.Error {
	if x.action != nil && x.action.Unsigned {
		return nil
	}
	id, bad := e.verifier.Verify(x.request, x.host)
	x.entry.AccessKeyID = id
	switch {
	case bad != nil:
		return bad
	case x.request.V3() && !e.holds(x, "common.acs3"):
		return api.BadRequest("IncompleteSignature", "The Authorization header is not known.")
	case x.request.Age(x.host) > rpc.Window/2 && !e.holds(x, "common.timestamp-window"):
		return api.BadRequest("IllegalTimestamp", "The timestamp is too old.")
	}
	return nil
}

// authorize reports whether the caller may not, for an action that then answers an empty list.
func (e *Emulator) authorize(x *exchange) (denied bool, bad *api.Error) {
	if x.action.Unsigned || x.action.Unrestricted || e.keys.allows(x.entry.AccessKeyID, x.product, x.action.Name) {
		return false, nil
	}
	if x.action.DeniedIsEmpty && e.holds(x, "ecs.denied-is-empty") {
		return true, nil
	}
	return false, api.Forbidden("Forbidden.RAM", "User not authorized to operate on the specified resource, or this API doesn't support RAM.")
}

func (e *Emulator) newCall(x *exchange, denied bool) *api.Call {
	region := x.request.Params.Or("RegionId", e.store.Region)
	return &api.Call{
		Action: x.action, RequestID: x.entry.RequestID, AccessKeyID: x.entry.AccessKeyID, Region: region,
		Now: x.now, Host: x.host, Params: x.request.Params, Denied: denied,
		FailItems: x.fault.FailItems, ItemCode: x.fault.ItemCode,
		Stale: x.fault.Stale, ReplicaLag: x.fault.ReplicaLag, TagSearchLag: x.fault.TagSearchLag,
		Job: x.fault.Job, Flipped: *e.flipped.Load(),
	}
}

func (e *Emulator) validate(c *api.Call) *api.Error {
	if c.Region != e.store.Region {
		return api.NotFound("InvalidRegionId.NotFound", "The specified RegionId %s does not exist.", c.Region)
	}
	return api.Validate(c.Action.Params, c.Params)
}

// requestID makes an id in the cloud's form.
func requestID() string {
	var b [16]byte
	// crypto/rand.Read never fails.
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%X-%X-%X-%X-%X", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
