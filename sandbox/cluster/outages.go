package cluster

import (
	"net/http"
	"sync"
)

// outages are instances whose metadata service is down: it answers that it cannot. On ECS that is a fault of the platform, which the
// emulator as such does not have.
type outages struct {
	down sync.Map // by instance ID
}

func (o *outages) begin(w http.ResponseWriter, r *http.Request) {
	o.down.Store(r.PathValue("instance"), true)
	w.WriteHeader(http.StatusNoContent)
}

func (o *outages) end(w http.ResponseWriter, r *http.Request) {
	o.down.Delete(r.PathValue("instance"))
	w.WriteHeader(http.StatusNoContent)
}

// before answers for the instances that are down and leaves the others to next.
func (o *outages) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, down := o.down.Load(r.PathValue("instance")); down {
			http.Error(w, "the metadata service is down", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}
