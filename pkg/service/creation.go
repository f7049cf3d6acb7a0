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

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// origin is where the load balancer of a Service comes from.
type origin struct {
	// creation is a call whose result is not known, nil for none, and made the load balancer that the last one made. Both are as in the
	// Record.
	creation *driver.Creation
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
	record, _ := driver.RecordOn(svc)
	return origin{creation: record.Creation, made: record.Made}
}

// storeRecord is [driver.Record.storeChange] with where the load balancer comes from, which is written when that changes.
func (s state) storeRecord(record driver.Record) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		from := s.originOf(svc)
		record.Creation, record.Made = from.creation, from.made
		record.StoreChange()(svc)
	}
}

// storeOrigin is the change that writes where the load balancer of a Service comes from, and nothing else of the Record.
func (s state) storeOrigin(svc *corev1.Service) {
	record, _ := driver.RecordOn(svc)
	if from := s.originOf(svc); from.made != record.Made || from.creation.ClientToken() != record.Creation.ClientToken() {
		s.storeRecord(record)(svc)
	}
}

// creating notes the creations of one plan.
type creating struct {
	writer serviceWriter
	svc    *corev1.Service
	known  *state
	// begun says that the plan has a creation.
	begun bool
}

// createOnce is a [driver.Create]. A call that the cloud refused has made nothing; one without an answer is made again by the next pass.
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
	c.known.origin = &origin{creation: &driver.Creation{Token: rand.Text(), Parameters: parameters,
		Begun: time.Now().UTC().Truncate(time.Second)},
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
	id, repeats := "", from.creation.Open() && from.creation.IsFor(svc, r.opts.Config)
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
