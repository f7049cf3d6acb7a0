package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// poll is how often calls and rate windows are read: they announce nothing.
	poll = 500 * time.Millisecond
	// gather is how long changes are gathered before the page is made anew: one Service makes a dozen.
	gather = 150 * time.Millisecond
)

// events streams the sections of the page, each when it has changed.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	stream := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	parameters, sent := r.URL.Query(), map[string]string{}
	for {
		changed := c.options.Store.Changed()
		now, err := c.render(c.view(parameters, c.options.Store.Now()))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, name := range sections {
			if sent[name] == now[name] {
				continue
			}
			// As JSON the text is one line, which is what an event's data has to be.
			line, err := json.Marshal(now[name])
			if err == nil {
				_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, line)
			}
			if err != nil {
				return
			}
		}
		sent = now
		if stream.Flush() != nil || !c.wait(r, changed) {
			return
		}
	}
}

// wait returns when something may have changed; false ends the stream.
func (c *Console) wait(r *http.Request, changed <-chan struct{}) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-c.options.Done:
		return false
	case <-time.After(poll):
		return true
	case <-changed:
	}
	select {
	case <-r.Context().Done():
		return false
	case <-c.options.Done:
		return false
	case <-time.After(gather):
		return true
	}
}
