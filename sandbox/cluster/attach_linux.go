package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/vpcnet"
)

// secondTag is on instances that are machines of another sandbox in the cloud of this one. Its value says which.
const secondTag = "sandbox-second"

// attachment asks for a network in the VPC of another sandbox.
type attachment struct {
	Address string
	// Instance says that the name is an instance's, which gets its metadata there.
	Instance bool
}

// serveAttachments lets other sandboxes attach their machines to the VPC.
func serveAttachments(mux *http.ServeMux, vpc *vpcnet.Network) {
	mux.HandleFunc("PUT /_sandbox/attachments/{name}", func(w http.ResponseWriter, r *http.Request) {
		var body attachment
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, fmt.Sprintf("the body is not the expected JSON object: %v", err), http.StatusBadRequest)
			return
		}
		address, err := netip.ParseAddr(body.Address)
		if err != nil {
			http.Error(w, fmt.Sprintf("Address is %q: an IPv4 address is accepted", body.Address), http.StatusBadRequest)
			return
		}
		place := vpcnet.Interface
		if body.Instance {
			place = vpcnet.Instance
		}
		side, err := vpc.Attach(r.Context(), vpcnet.Endpoint{Name: r.PathValue("name"), Address: address, Place: place})
		switch {
		case errors.Is(err, vpcnet.ErrAttached):
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			_, _ = w.Write([]byte(side.Path)) // the asker is gone when this fails
		}
	})
	mux.HandleFunc("DELETE /_sandbox/attachments/{name}", func(w http.ResponseWriter, r *http.Request) {
		if err := vpc.Detach(r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}
