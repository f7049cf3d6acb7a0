package emulator

import (
	"errors"
	"net/http"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Now is the time in the cloud.
func (e *Emulator) Now() time.Time { return e.store.Now() }

// Advance sets the clock of the cloud forward: asynchronous changes end, rate windows begin anew, temporary keys and ClientTokens expire. Callers
// sign by their own clock, which stays.
func (e *Emulator) Advance(d time.Duration) {
	e.store.Advance(d)
	e.fabric.Sync()
}

func (e *Emulator) getClock(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"now": e.Now().UTC(), "ahead": e.store.Ahead().String()})
}

// postClock sets the clock forward: {"advance":"1h"}. There is no way back, because what has ended does not begin again.
func (e *Emulator) postClock(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Advance cloud.Duration `json:"advance"`
	}
	err := decode(r, &body)
	if err == nil && body.Advance < 0 {
		err = errors.New("the clock cannot be set back")
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	e.Advance(time.Duration(body.Advance))
	e.getClock(w, r)
}
