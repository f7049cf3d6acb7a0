package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
)

// admin calls the emulator's own API, and records that.
func (r *R) admin(method, path, body string) {
	if _, err := r.options.Admin(r.ctx, method, path, body); err != nil {
		r.fail(err)
	}
	r.recording.Exchanges = append(r.recording.Exchanges, Exchange{Admin: &Admin{method, r.names.text(path), r.names.text(body)}})
}

// settings changes settings of the emulator until the scenario ends.
func (r *R) settings(body string) {
	before, err := r.options.Admin(r.ctx, http.MethodGet, "/_emulator/settings", "")
	if err != nil {
		r.fail(err)
	}
	restored, err := restored(string(before), body)
	if err != nil {
		r.fail(err)
	}
	r.restore = append([]func() error{func() error {
		_, err := r.options.Admin(context.WithoutCancel(r.ctx), http.MethodPut, "/_emulator/settings", restored)
		return err
	}}, r.restore...)
	r.admin(http.MethodPut, "/_emulator/settings", body)
}

// restored is the body that takes back a change: the settings before, and the zero value of what was not set.
func restored(before, change string) (string, error) {
	var all, changed map[string]any
	if err := errors.Join(json.Unmarshal([]byte(before), &all), json.Unmarshal([]byte(change), &changed)); err != nil {
		return "", fmt.Errorf("read the settings: %w", err)
	}
	for name, value := range changed {
		if _, set := all[name]; !set {
			all[name] = reflect.Zero(reflect.TypeOf(value)).Interface()
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encode the settings: %w", err)
	}
	return string(data), nil
}
