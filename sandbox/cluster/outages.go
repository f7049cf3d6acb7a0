package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/controlplane"
)

// outages are parts of the sandbox that are down, for tests of what the programs do meanwhile.
type outages struct {
	// metadata has the instances whose metadata service answers that it cannot, by ID. On ECS that is a fault of the platform, which
	// the emulator as such does not have.
	metadata sync.Map
	// controlPlane is what is wrong with the control plane.
	controlPlane controlplane.Trouble
}

func (o *outages) serve(mux *http.ServeMux) {
	mux.HandleFunc("PUT /_sandbox/outages/{instance}", func(w http.ResponseWriter, r *http.Request) {
		o.metadata.Store(r.PathValue("instance"), true)
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /_sandbox/outages/{instance}", func(w http.ResponseWriter, r *http.Request) {
		o.metadata.Delete(r.PathValue("instance"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("PUT /_sandbox/trouble", o.setTrouble)
}

// withMetadata answers for the instances that are down and leaves the others to next.
func (o *outages) withMetadata(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, down := o.metadata.Load(r.PathValue("instance")); down {
			http.Error(w, "the metadata service is down", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// trouble is what is to be wrong with the control plane; nothing is when it is empty.
type trouble struct {
	APIServerGone bool            `json:"apiServerGone"`
	EtcdFails     bool            `json:"etcdFails"`
	EtcdDelay     metav1.Duration `json:"etcdDelay"`
}

func (o *outages) setTrouble(w http.ResponseWriter, r *http.Request) {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	var wanted trouble
	if err := decoder.Decode(&wanted); err != nil {
		http.Error(w, fmt.Sprintf("%v; accepted is {\"apiServerGone\":true,\"etcdFails\":true,\"etcdDelay\":\"3s\"}, or less of it", err),
			http.StatusBadRequest)
		return
	}
	o.controlPlane.Set(controlplane.Ailment{APIServerGone: wanted.APIServerGone, EtcdFails: wanted.EtcdFails,
		EtcdDelay: wanted.EtcdDelay.Duration})
	w.WriteHeader(http.StatusNoContent)
}
