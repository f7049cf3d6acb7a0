package service

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// Creation is a call that creates a load balancer. It stands in the [Record] before it is sent, so that whoever finds it there makes
// exactly the same call again, and the cloud answers with the load balancer that the first one made. A search could not tell: the index of
// tags lags, and anybody can give a load balancer a name.
type Creation struct {
	// Token is the client token of the call, a random one: with that of an earlier call, the cloud would answer with what that one made.
	Token string `json:"token"`
	// Parameters are those of the call, as the product of the load balancer encodes them.
	Parameters json.RawMessage `json:"parameters"`
	// Begun is when the call was sent first.
	Begun time.Time `json:"begun"`
}

// Open reports whether the call may still be made again. Later on, only a search shows what it made. One that is begun in the future was
// never begun, and would stay open for good.
func (c *Creation) Open() bool {
	return c != nil && time.Since(c.Begun) < waits.CreationRepeated && time.Until(c.Begun) < waits.CreationRepeated
}

// isFor reports whether the call makes a load balancer that the Service may have: one of its own, or one of a group that it may join.
// Somebody may have written another one to the status of the Service: with the tag of another Service or group, that one would get there.
func (c *Creation) isFor(svc *corev1.Service, config config.Config) bool {
	var made struct{ Tags []alicloud.Tag }
	if err := json.Unmarshal(c.Parameters, &made); err != nil {
		return false
	}
	owners := 0
	for _, tag := range made.Tags {
		group, grouped := mark.ParseGroup(tag.Value)
		switch {
		case tag.Key == mark.TagOwner && tag.Value == mark.DefaultName(svc.UID),
			tag.Key == mark.TagGroup && grouped && group.ClusterID == config.ClusterID &&
				config.Policy.AllowsGroup(svc.Namespace, group.Namespace, group.Name):
			owners++
		case tag.Key != mark.TagCluster && annotation.ReservedTags.Has(tag.Key):
			return false
		}
	}
	return owners == 1
}

func (c *Creation) clientToken() string {
	if c == nil {
		return ""
	}
	return c.Token
}

// origin is where the load balancer of a Service comes from.
type origin struct {
	// creation is a call whose result is not known, nil for none, and made the load balancer that the last one made. Both are as in the
	// Record.
	creation *Creation
	made     string
	// missing says since when reads do not show what the creation made, and searched that it was refused, so that only a search shows that.
	missing  presence.Missing
	searched bool
	// unsent says that the cloud has not seen the call.
	unsent bool
}

// originOf returns where the load balancer of a Service comes from: as this process knows it, because the cache may lag behind what it
// wrote, else as the Service says.
func (s state) originOf(svc *corev1.Service) origin {
	if s.origin != nil {
		return *s.origin
	}
	record, _ := RecordOn(svc)
	return origin{creation: record.Creation, made: record.Made}
}

// storeRecord is [Record.storeChange] with where the load balancer comes from, which is written when that changes.
func (s state) storeRecord(record Record) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		from := s.originOf(svc)
		record.Creation, record.Made = from.creation, from.made
		record.storeChange()(svc)
	}
}

// storeOrigin is the change that writes where the load balancer of a Service comes from, and nothing else of the Record.
func (s state) storeOrigin(svc *corev1.Service) {
	record, _ := RecordOn(svc)
	if from := s.originOf(svc); from.made != record.Made || from.creation.clientToken() != record.Creation.clientToken() {
		s.storeRecord(record)(svc)
	}
}

// Create makes the call that creates a load balancer. The call is noted on the Service before send makes it with the token, and how it
// ended afterwards.
type Create func(ctx context.Context, parameters any, send func(token string) (id string, err error)) error

// creating notes the creations of one plan.
type creating struct {
	writer serviceWriter
	svc    *corev1.Service
	known  *state
	// begun says that the plan has a creation.
	begun bool
}

// createOnce is a [Create]. A call that the cloud refused has made nothing; one without an answer is made again by the next pass.
func (c *creating) createOnce(ctx context.Context, parameters any, send func(token string) (id string, err error)) error {
	encoded, err := json.Marshal(parameters)
	if err != nil {
		return fmt.Errorf("encode the parameters of the load balancer: %w", err)
	}
	c.begun = true
	if err = c.beginCreation(ctx, encoded); err != nil {
		return fmt.Errorf("record the creation of the load balancer: %w", err)
	}
	from := c.known.origin
	id, err := send(from.creation.Token)
	_, answered := errors.AsType[*alicloud.Error](err)
	switch from.unsent = false; {
	case err == nil:
		from.creation, from.made = nil, id
	case !answered, alicloud.IsNoCredentials(err), alicloud.IsThrottled(err):
		from.unsent = true
	case !alicloud.IsAmbiguous(err) && !alicloud.IsBusy(err):
		from.creation = nil
	}
	return err
}

// beginCreation notes a call on the Service, unless it stands there already and was not sent: each patch is an event, for which a pass that
// waits for the rate limit is made anew.
func (c *creating) beginCreation(ctx context.Context, parameters json.RawMessage) error {
	before := c.known.originOf(c.svc)
	if before.unsent && bytes.Equal(before.creation.Parameters, parameters) && before.creation.Open() {
		return nil
	}
	c.known.origin = &origin{creation: &Creation{Token: rand.Text(), Parameters: parameters, Begun: time.Now().UTC().Truncate(time.Second)},
		made: before.made}
	// The patch names the version: a process that lost its Lease may have begun a creation that the cache does not show yet.
	written, err := c.writer.changeExactly(ctx, c.svc, c.known.storeOrigin)
	if err == nil && written == nil {
		err = &problem.WaitError{Reason: "the Service has changed", For: time.Second}
	}
	if err != nil {
		c.known.origin = &before
		return err
	}
	c.svc = written
	return nil
}

// endCreation drops a call that was not sent, and that the plan of this pass does without.
func (c *creating) endCreation() {
	if from := c.known.origin; from != nil && from.unsent && !c.begun {
		c.known.origin = &origin{made: from.made}
	}
}

// settleCreation learns what came of a creation whose answer nobody has noted, before anything else is done to the Service: it makes the
// call again, and notes the load balancer that the cloud answers with. Where the call cannot be made again, only searches show what it
// made; then the pass goes on.
func (r *Reconciler) settleCreation(ctx context.Context, svc *corev1.Service, known state) (*corev1.Service, state, error) {
	from := known.originOf(svc)
	known.origin = &from
	if from.creation == nil || from.searched || from.unsent || known.pausedBy != "" {
		return svc, known, nil
	}
	id, repeats := "", from.creation.Open() && from.creation.isFor(svc, r.opts.Config)
	var err error
	if repeats {
		id, from.missing, err = known.engine.Repeat(ctx, svc, *from.creation, from.missing)
	}
	from.searched = !repeats || refusesRepeat(err)
	known.balancer = known.balancer.Invalidate("a creation of a load balancer has no answer yet") // also where nothing was there before it
	switch {
	case from.searched:
		return svc, known, nil
	case err != nil:
		return svc, known, fmt.Errorf("repeat the creation of the load balancer: %w", err)
	}
	from.creation, from.made = nil, id
	written, err := r.writer.changeService(ctx, svc, known.storeOrigin)
	switch {
	case err != nil:
		return svc, known, fmt.Errorf("record the load balancer that was created: %w", err)
	case written == nil: // gone, or the API server gave up a patch between those of others: a removal must not take that for the end
		return svc, known, &problem.WaitError{Reason: "the Service has changed", For: time.Second}
	}
	return written, known, nil
}

// refusesRepeat reports whether the cloud refuses a creation that is made again, for what it asks for. That the permission is missing says
// nothing of it.
func refusesRepeat(err error) bool {
	return alicloud.IsTokenReused(err) || refusal.OfCreation(err) && !alicloud.IsForbidden(err)
}

// searchedFor notes that searches have shown what a creation made, or proven that there is nothing.
func (s state) searchedFor() state {
	if s.origin != nil && s.origin.searched {
		s.origin = &origin{made: s.origin.made}
	}
	return s
}
