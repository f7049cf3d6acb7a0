package alicloud

import (
	"context"
	"errors"
	"fmt"
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

// same reports whether both would sign a call alike.
func (c Credentials) same(other Credentials) bool {
	return c.AccessKeyID == other.AccessKeyID && c.AccessKeySecret == other.AccessKeySecret && c.SecurityToken == other.SecurityToken
}

// CredentialsProvider supplies the keys of each call. Its errors are of type [CredentialsError].
type CredentialsProvider interface {
	// Credentials returns keys that are valid now.
	Credentials(ctx context.Context) (Credentials, error)
}

// Refresher is a [CredentialsProvider] whose keys can change.
type Refresher interface {
	CredentialsProvider
	// Refresh is called when the cloud has refused used as expired or unknown. It returns what stands in their place: keys
	// that another call has fetched meanwhile, else what the source gives now, which may be used once more.
	Refresh(ctx context.Context, used Credentials) (Credentials, error)
}

// CredentialsError says that there are no keys to sign a call with. The call was not made, so it is neither ambiguous nor
// does it say anything about a resource: [IsNotFound], [IsAmbiguous] and their like are false for it.
type CredentialsError struct {
	// Source names where the keys should have come from, for example "the RAM role of this instance".
	Source string

	err error
}

// Error implements error.
func (e *CredentialsError) Error() string {
	return fmt.Sprintf("no credentials from %s: %v", e.Source, e.err)
}

// Unwrap returns the reason.
func (e *CredentialsError) Unwrap() error { return e.err }

// IsTemporary reports whether the source of credentials did not answer or answered that it is busy, so that asking again
// may help without anybody's doing.
func (e *CredentialsError) IsTemporary() bool {
	if answer, ok := errors.AsType[*Error](e.err); ok {
		return answer.isAmbiguous() || answer.isThrottled()
	}
	var metadata *metadataError
	return errors.As(e.err, &metadata)
}

// IsNoCredentials reports whether a call was not made because there were no keys to sign it with.
func IsNoCredentials(err error) bool {
	var e *CredentialsError
	return errors.As(err, &e)
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

// ErrNoRole says that no RAM role is attached to this ECS instance.
var ErrNoRole = errors.New("no RAM role is attached to this ECS instance")

// NewRoleCredentials returns the temporary keys of the RAM role that is attached to this ECS instance, read from its
// metadata service on first use and replaced before they end.
func NewRoleCredentials(metadata *Metadata) *TemporaryCredentials {
	return newTemporaryCredentials("the RAM role of this instance", metadata.RoleCredentials)
}

// keepFreshEvery is how often [KeepFresh] checks the keys. A changed key file acts within it, and a token that the kubelet has
// replaced is used within it.
const keepFreshEvery = 10 * time.Second

// KeepFresh checks the keys until ctx ends, so that no call has to wait for new ones, and so that a mistake in a changed
// file is reported at once and not at the next call.
func KeepFresh(ctx context.Context, provider CredentialsProvider) {
	ticker := time.NewTicker(keepFreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// Whoever needs the keys gets the error; providers log a failed renewal themselves while old keys serve.
		_, _ = provider.Credentials(ctx)
	}
}
