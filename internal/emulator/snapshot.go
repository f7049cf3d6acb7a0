package emulator

import (
	"fmt"
	"io"
	"net/http"
)

// maxSnapshot bounds what is read of a snapshot.
const maxSnapshot = 1 << 30

// Snapshot returns every resource, for [Emulator.Restore].
func (e *Emulator) Snapshot() ([]byte, error) { return e.store.Snapshot() } //nolint:wrapcheck // it says what failed

// Restore replaces every resource by those of a snapshot, also of another account. Settings, keys, faults, the journal and the clock stay.
// One that cannot be read changes nothing.
func (e *Emulator) Restore(snapshot []byte) error {
	if err := e.store.Restore(snapshot); err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	e.fabric.Sync()
	return nil
}

func (e *Emulator) getSnapshot(w http.ResponseWriter, _ *http.Request) {
	data, err := e.Snapshot()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the client is gone when this fails
}

func (e *Emulator) putSnapshot(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSnapshot))
	if err != nil {
		err = fmt.Errorf("read the snapshot: %w", err)
	} else {
		err = e.Restore(data)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
