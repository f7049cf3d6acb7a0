package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// clbState is what exists in the cloud, as far as scenarios ask for it.
type clbState struct {
	LoadBalancers []struct {
		Listeners     []struct{ Status string }
		VServerGroups []vServerGroup
	}
}

type vServerGroup struct {
	ID      string `json:"VServerGroupId"`
	Servers []struct {
		ID string `json:"ServerId"`
	} `json:"BackendServers"`
}

// state reads it. The journal shows nothing of that.
func (e *env) state(ctx context.Context) (state clbState, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/_emulator/state", http.NoBody)
	if err != nil {
		return state, fmt.Errorf("read the state of the cloud: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return state, fmt.Errorf("read the state of the cloud: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body) // it is part of an error anyway
		return state, fmt.Errorf("read the state of the cloud: %s: %s", response.Status, text)
	}
	if err = json.NewDecoder(response.Body).Decode(&state); err != nil {
		return state, fmt.Errorf("decode the state of the cloud: %w", err)
	}
	return state, nil
}

// runningListeners counts the listeners that run, of all CLBs.
func (s clbState) runningListeners() int {
	n := 0
	for _, lb := range s.LoadBalancers {
		for _, listener := range lb.Listeners {
			if listener.Status == "running" {
				n++
			}
		}
	}
	return n
}

// members lists the instances in each vServer group.
func (s clbState) members() map[string][]string {
	all := map[string][]string{}
	for _, lb := range s.LoadBalancers {
		for _, group := range lb.VServerGroups {
			ids := make([]string, 0, len(group.Servers))
			for _, server := range group.Servers {
				ids = append(ids, server.ID)
			}
			all[group.ID] = ids
		}
	}
	return all
}
