package emulator

import (
	"crypto/rand"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/metadata"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/sts"
)

// keyring knows every access key of the account, lasting and temporary, and what each may do.
type keyring struct {
	roles map[string]cloud.RoleConfig

	mu      sync.RWMutex
	keys    map[string]heldKey              // guarded by mu
	current map[string]metadata.Credentials // of each role, for the metadata service; guarded by mu
}

type heldKey struct {
	rpc.Key
	permissions []string
	// principal is who the key speaks for: user/<key id> or assumed-role/<role>/<session>.
	principal string
}

func newKeyring(c *cloud.Config) *keyring {
	k := &keyring{
		roles: map[string]cloud.RoleConfig{}, keys: map[string]heldKey{}, current: map[string]metadata.Credentials{},
	}
	for _, a := range c.AccessKeys {
		k.keys[a.ID] = heldKey{
			Key: rpc.Key{ID: a.ID, Secret: a.Secret, Disabled: a.Disabled}, permissions: a.Permissions, principal: "user/" + a.ID,
		}
	}
	for _, r := range c.Roles {
		k.roles[r.Name] = r
	}
	return k
}

func (k *keyring) find(id string) (rpc.Key, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	key, ok := k.keys[id]
	return key.Key, ok
}

// allows reports whether a key may call an action. Patterns have the form of RAM policies: slb:*, ecs:Describe*, *. No
// pattern at all allows everything, as a key without a configured policy is the account's own.
func (k *keyring) allows(id, product, action string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	patterns := k.keys[id].permissions
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		if p == "*" {
			return true
		}
		ok, err := path.Match(strings.ToLower(p), strings.ToLower(product+":"+action))
		return err == nil && ok
	})
}

// permit changes what a key may do, as editing its RAM policy does. It reports false for a key that is not there.
func (k *keyring) permit(id string, patterns []string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.keys[id]
	if ok {
		key.permissions = patterns
		k.keys[id] = key
	}
	return ok
}

// issue makes a temporary key for a role.
func (k *keyring) issue(role cloud.RoleConfig, session string, now time.Time, life time.Duration) metadata.Credentials {
	c := metadata.Credentials{
		AccessKeyID: "STS." + rand.Text()[:24], AccessKeySecret: rand.Text(), SecurityToken: "CAIS" + rand.Text() + rand.Text(),
		Expiration: now.Add(life).Truncate(time.Second), LastUpdated: now,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, old := range k.keys {
		// An expired key is kept for a while: its holder is to learn that it expired, not that it never was.
		if old.Token != "" && now.Sub(old.Expires) > keepExpired {
			delete(k.keys, id)
		}
	}
	k.keys[c.AccessKeyID] = heldKey{
		Key:         rpc.Key{ID: c.AccessKeyID, Secret: c.AccessKeySecret, Token: c.SecurityToken, Expires: c.Expiration},
		permissions: role.Permissions, principal: "assumed-role/" + role.Name + "/" + session,
	}
	return c
}

// session issues a temporary key through STS.
func (k *keyring) session(role cloud.RoleConfig, session string, now time.Time, life time.Duration) sts.Credentials {
	c := k.issue(role, session, now, life)
	return sts.Credentials{AccessKeyID: c.AccessKeyID, AccessKeySecret: c.AccessKeySecret, SecurityToken: c.SecurityToken,
		Expiration: c.Expiration}
}

// keepExpired is how long expired temporary keys are remembered.
const keepExpired = 24 * time.Hour

// principal names who a key speaks for.
func (k *keyring) principal(id string) string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.keys[id].principal
}

// Life of the credentials that the metadata service hands out, and when it renews them: the cloud does so long before
// they end, so that a client that reads on time never holds expired ones.
const (
	roleLife  = 6 * time.Hour
	roleRenew = 30 * time.Minute
)

// roleCredentials returns the present credentials of an instance's role.
func (k *keyring) roleCredentials(role string, now time.Time) (metadata.Credentials, bool) {
	r, ok := k.roles[role]
	if !ok {
		return metadata.Credentials{}, false
	}
	k.mu.RLock()
	c, have := k.current[role]
	k.mu.RUnlock()
	if have && c.Expiration.Sub(now) > roleRenew {
		return c, true
	}
	c = k.issue(r, "ecs", now, roleLife)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current[role] = c
	return c, true
}
