package alicloud

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Credentials sign calls. They must never reach a log line, an event or an error.
type Credentials struct {
	AccessKeyID     string
	AccessKeySecret string
	// SecurityToken comes with temporary keys, else it is empty.
	SecurityToken string
	// Expiration is when temporary keys end; zero for keys that do not expire.
	Expiration time.Time
}

// String hides the keys, so that a value that slips into a format verb shows nothing.
func (Credentials) String() string { return "[hidden]" }

// GoString hides the keys from %#v.
func (Credentials) GoString() string { return "[hidden]" }

// CredentialsProvider supplies the keys of each call.
type CredentialsProvider interface {
	// Credentials returns keys that are valid now.
	Credentials(ctx context.Context) (Credentials, error)
}

// StaticCredentials are keys that do not change.
type StaticCredentials Credentials

// Credentials implements [CredentialsProvider].
func (s StaticCredentials) Credentials(context.Context) (Credentials, error) {
	return Credentials(s), nil
}

// String hides the keys.
func (StaticCredentials) String() string { return "[hidden]" }

// GoString hides the keys from %#v.
func (StaticCredentials) GoString() string { return "[hidden]" }

// roleRefreshMargin is how long before their end a role's keys are replaced. The metadata service publishes new ones
// well before that, and a call that starts now must still be valid when it arrives.
const roleRefreshMargin = 5 * time.Minute

// RoleCredentials are the temporary keys of the RAM role that is attached to this ECS instance, read from its metadata
// service and replaced before they end.
type RoleCredentials struct {
	metadata *Metadata

	mu   sync.Mutex // guards keys
	keys Credentials
}

// NewRoleCredentials returns a provider that reads from metadata on first use.
func NewRoleCredentials(metadata *Metadata) *RoleCredentials {
	return &RoleCredentials{metadata: metadata}
}

// Credentials implements [CredentialsProvider]. While the metadata service fails, keys that are still valid serve on.
func (r *RoleCredentials) Credentials(ctx context.Context) (Credentials, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := time.Until(r.keys.Expiration)
	if left > roleRefreshMargin {
		return r.keys, nil
	}
	keys, err := r.metadata.RoleCredentials(ctx)
	if err != nil {
		if left > 0 {
			return r.keys, nil
		}
		return Credentials{}, fmt.Errorf("credentials of the instance's RAM role: %w", err)
	}
	r.keys = keys
	return keys, nil
}

// ErrNoRole says that no RAM role is attached to this ECS instance.
var ErrNoRole = errors.New("no RAM role is attached to this ECS instance")
