package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// admin registers the admin API.
func (e *Emulator) admin(mux *http.ServeMux) {
	routes := map[string]http.HandlerFunc{
		"GET /_emulator/state":             e.getState,
		"GET /_emulator/calls":             e.getCalls,
		"DELETE /_emulator/calls":          e.deleteCalls,
		"GET /_emulator/faults":            e.getFaults,
		"POST /_emulator/faults":           e.postFault,
		"DELETE /_emulator/faults":         e.deleteFaults,
		"PUT /_emulator/instances/{id}":    e.putInstance,
		"DELETE /_emulator/instances/{id}": e.deleteInstance,
		// Container instances (ECI) are made by another product's API; the others see their interfaces.
		"PUT /_emulator/networkinterfaces/{id}":    e.putInterface,
		"DELETE /_emulator/networkinterfaces/{id}": e.deleteInterface,
		// The console's RAM pages, as far as they are needed.
		"PUT /_emulator/accesskeys/{id}": e.putAccessKey,
		// What no call of the journal does: the cloud locks a load balancer, a user of the console changes its tags.
		"PUT /_emulator/loadbalancers/{id}": e.putLoadBalancer,
		"GET /_emulator/settings":           e.getSettings,
		"PUT /_emulator/settings":           e.putSettings,
		"GET /_emulator/clock":              e.getClock,
		"POST /_emulator/clock":             e.postClock,
		"GET /_emulator/snapshot":           e.getSnapshot,
		"PUT /_emulator/snapshot":           e.putSnapshot,
	}
	methods := map[string][]string{}
	for pattern, handler := range routes {
		mux.Handle(pattern, e.options.restricted(handler))
		method, path, _ := strings.Cut(pattern, " ")
		methods[path] = append(methods[path], method)
	}
	for path, accepted := range methods {
		slices.Sort(accepted)
		mux.Handle(path, e.options.restricted(otherMethod(accepted)))
	}
	// Without this, a misspelled path would be a call of the OpenAPI, and be counted as one.
	mux.Handle("/_emulator/", e.options.restricted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("the admin API has no path %s", r.URL.Path))
	})))
}

// otherMethod refuses the methods that a path of the admin API does not have.
func otherMethod(accepted []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(accepted, ", "))
		refuse(w, http.StatusMethodNotAllowed, fmt.Errorf("%s %s: accepted: %s", r.Method, r.URL.Path, strings.Join(accepted, ", ")))
	}
}

// restricted answers loopback clients only, unless the options open it: the admin API can read and break everything without a key. No web
// page of another origin gets an answer: a browser on this machine is a loopback client, and so is one that a name which resolves to this
// machine has led here.
func (o *Options) restricted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch origin := r.Header.Get("Origin"); {
		case !o.OpenAdmin && (!isLoopback(r.RemoteAddr) || !isLoopback(r.Host)):
			http.Error(w, "the admin API answers loopback clients only, which ask for localhost or a loopback address", http.StatusForbidden)
		case origin != "" && !isOrigin(origin, r.Host):
			http.Error(w, "the admin API does not answer web pages of other origins", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether an address, with or without a port, is one of this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// isOrigin reports whether a page of the origin was served by this host, or by a server on a loopback address where this is one, too.
func isOrigin(origin, host string) bool {
	parsed, err := url.Parse(origin)
	return err == nil && parsed.Host != "" && (parsed.Host == host || isLoopback(parsed.Host) && isLoopback(host))
}

// reply sends a value as JSON. The client is gone when that fails.
func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

// decode reads a JSON body, strictly.
func decode(r *http.Request, v any) error {
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = cloud.Decode(text, v)
	}
	if err != nil {
		return fmt.Errorf("the body is not the expected JSON object: %w", err)
	}
	return nil
}

func (e *Emulator) getCalls(w http.ResponseWriter, r *http.Request) {
	after := int64(0)
	if text := r.URL.Query().Get("after"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, fmt.Errorf("after=%q is not a number", text))
			return
		}
		after = n
	}
	reply(w, http.StatusOK, map[string]any{"calls": e.journal.After(after)})
}

// putAccessKey changes what a key may do: {"permissions": ["slb:*", …]}. Without a pattern it may do everything.
func (e *Emulator) putAccessKey(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Permissions []string `json:"permissions"`
	}
	if err := decode(r, &body); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if err := cloud.CheckPermissions(body.Permissions); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("permissions%w", err))
		return
	}
	if !e.Permit(r.PathValue("id"), body.Permissions...) {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no access key %q", r.PathValue("id")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (e *Emulator) deleteCalls(w http.ResponseWriter, _ *http.Request) {
	e.journal.Clear()
	w.WriteHeader(http.StatusNoContent)
}

// instanceBody is an instance in the field names of DescribeInstances.
type instanceBody struct {
	InstanceName, HostName, ZoneId, VSwitchId, PrivateIpAddress string //nolint:revive // names on the wire
	InstanceType, RamRoleName, Status                           string
	HttpTokens, HttpEndpoint                                    string //nolint:revive // names on the wire
	SourceDestCheck                                             *bool
	Tags                                                        []struct{ TagKey, TagValue, Key, Value string }
}

func (b instanceBody) spec() InstanceSpec {
	s := InstanceSpec{
		Name: b.InstanceName, HostName: b.HostName, ZoneID: b.ZoneId, VSwitchID: b.VSwitchId, PrivateIP: b.PrivateIpAddress,
		Type: b.InstanceType, RAMRole: b.RamRoleName, Status: b.Status, HTTPTokens: b.HttpTokens, HTTPEndpoint: b.HttpEndpoint,
		SourceDestCheck: b.SourceDestCheck != nil && *b.SourceDestCheck,
	}
	if b.Tags != nil {
		s.Tags = map[string]string{}
	}
	for _, t := range b.Tags {
		s.Tags[cloud.OrDefault(t.TagKey, t.Key)] = cloud.OrDefault(t.TagValue, t.Value)
	}
	return s
}

func (e *Emulator) putInstance(w http.ResponseWriter, r *http.Request) {
	var body instanceBody
	err := decode(r, &body)
	if err == nil {
		err = errors.Join(
			oneOf("HttpTokens", body.HttpTokens, "", "optional", "required"), oneOf("HttpEndpoint", body.HttpEndpoint, "", "enabled", "disabled"))
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	i, err := e.PutInstance(r.PathValue("id"), body.spec())
	if err == nil && body.SourceDestCheck != nil {
		e.checkSource(i.ID, *body.SourceDestCheck)
	}
	switch {
	case errors.Is(err, ErrFixed), errors.Is(err, cloud.ErrAddressTaken), errors.Is(err, cloud.ErrNoAddress):
		refuse(w, http.StatusConflict, err)
	case err != nil:
		refuse(w, http.StatusBadRequest, err)
	default:
		reply(w, http.StatusOK, map[string]string{
			"InstanceId": i.ID, "InstanceName": i.Name, "ZoneId": i.ZoneID, "VSwitchId": i.VSwitchID,
			"PrivateIpAddress": i.PrivateIP, "NetworkInterfaceId": i.NetworkInterfaceID, "Status": i.Status,
		})
	}
}

// checkSource switches the source and destination check of the primary interface of an instance.
func (e *Emulator) checkSource(id string, on bool) {
	e.store.Update(func() {
		if i, ok := e.store.Instances.Get(id); ok {
			i.PrimaryInterface.SourceDestCheck = on
		}
	})
}

func (e *Emulator) deleteInstance(w http.ResponseWriter, r *http.Request) {
	if !e.ReleaseInstance(r.PathValue("id")) {
		refuse(w, http.StatusNotFound, fmt.Errorf("instance %s does not exist", r.PathValue("id")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
