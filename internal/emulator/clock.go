package emulator

import (
	"errors"
	"net/http"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Now is the time in the cloud.
func (e *Emulator) Now() time.Time { return e.store.Now() }

// Advance sets the clock of the cloud forward: asynchronous changes end, rate windows begin anew, temporary keys and ClientTokens expire.
// Callers sign by their own clock, which stays. The clock cannot be set back.
func (e *Emulator) Advance(d time.Duration) error {
	if err := e.store.Advance(d); err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	e.fabric.Sync()
	return nil
}

func (e *Emulator) getClock(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"now": e.Now().UTC(), "ahead": e.store.Ahead().String()})
}

// postClock sets the clock forward: {"advance":"1h"}. There is no way back, because what has ended does not begin again.
func (e *Emulator) postClock(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Advance *cloud.Duration `json:"advance"`
	}
	err := decode(r, &body)
	if err == nil && body.Advance == nil {
		err = errors.New(`advance: required, a duration such as "30s"`)
	}
	if err == nil {
		err = e.Advance(time.Duration(*body.Advance))
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	e.getClock(w, r)
}
