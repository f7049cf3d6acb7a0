package emulator

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Settings are what can change while the emulator runs: how the cloud behaves where documents leave it open, and its quotas.
type Settings struct {
	cloud.Switches
	Quotas cloud.Limits `json:"quotas"`
}

// Settings returns the settings in force.
func (e *Emulator) Settings() Settings {
	var s Settings
	e.store.View(func() { s = Settings{e.store.Switches, e.store.Limits} })
	s.Flipped = slices.Clone(s.Flipped)
	return s
}

// Change changes settings for the calls to come. The length of names, quota nameCharacters, stays as it was at the start.
func (e *Emulator) Change(change func(*Settings)) error {
	return e.change(func(s *Settings) error {
		change(s)
		return nil
	})
}

func (e *Emulator) change(change func(*Settings) error) error {
	var err error
	e.store.Update(func() {
		s := Settings{e.store.Switches, e.store.Limits}
		s.Flipped = slices.Clone(s.Flipped)
		if err = change(&s); err == nil {
			err = errors.Join(s.Check(), s.Quotas.Check())
		}
		if err == nil {
			e.store.Switches, e.store.Limits = s.Switches, s.Quotas
			e.flip(s.Flipped)
		}
	})
	return err
}

func (e *Emulator) getSettings(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, e.Settings())
}

// putSettings changes the settings that the body names; the others stay. The body is decoded into the settings in force, so that two
// requests at once that name different settings both count.
func (e *Emulator) putSettings(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = e.change(func(s *Settings) error { return cloud.Decode(text, s) })
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// SetLoadBalancerTags replaces the tags of a load balancer as somebody in the console would, without a call in the journal. It
// reports whether there is such a load balancer.
func (e *Emulator) SetLoadBalancerTags(id string, tags map[string]string) bool {
	known := false
	e.store.Update(func() {
		var lb *cloud.LoadBalancer
		if lb, known = e.store.LoadBalancers.Get(id); known {
			lb.SetTags(cloud.TagsOf(tags), e.store.Now())
		}
	})
	return known
}

// SetNLBLocks has the operators of the cloud lock an NLB for these reasons, or unlock it. It reports whether there is such an NLB.
func (e *Emulator) SetNLBLocks(id string, reasons ...string) bool {
	known := false
	e.store.Update(func() {
		var lb *cloud.NLB
		if lb, known = e.store.NLBs.Get(id); known {
			lb.Locks = reasons
		}
	})
	return known
}

// loadBalancerBody is what operators of the cloud or users of its console change. The first two are of a CLB, the last one is of an NLB.
type loadBalancerBody struct {
	LoadBalancerStatus string
	Tags               *[]struct{ TagKey, TagValue string }
	OperationLocks     *[]struct{ LockReason string }
}

func (b *loadBalancerBody) check() error {
	ofCLB, ofNLB := b.LoadBalancerStatus != "" || b.Tags != nil, b.OperationLocks != nil
	return errors.Join(
		oneOf("LoadBalancerStatus", b.LoadBalancerStatus, "", cloud.Active, cloud.Inactive, cloud.Locked),
		require(ofCLB != ofNLB, "accepted: LoadBalancerStatus and Tags for a CLB, or OperationLocks for an NLB"),
	)
}

// putLoadBalancer sets the status or the tags of a CLB, or the locks of an NLB.
func (e *Emulator) putLoadBalancer(w http.ResponseWriter, r *http.Request) {
	var body loadBalancerBody
	err := decode(r, &body)
	if err == nil {
		err = body.check()
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	id, product := r.PathValue("id"), "CLB"
	var known bool
	if body.OperationLocks != nil {
		var reasons []string
		for _, lock := range *body.OperationLocks {
			reasons = append(reasons, lock.LockReason)
		}
		product, known = "NLB", e.SetNLBLocks(id, reasons...)
	} else {
		known = e.changeCLB(id, &body)
	}
	if !known {
		refuse(w, http.StatusNotFound, fmt.Errorf("%s %s does not exist", product, id))
		return
	}
	e.fabric.Sync()
	w.WriteHeader(http.StatusNoContent)
}

func (e *Emulator) changeCLB(id string, body *loadBalancerBody) bool {
	known := false
	e.store.Update(func() {
		var lb *cloud.LoadBalancer
		if lb, known = e.store.LoadBalancers.Get(id); known {
			lb.Status = cloud.OrDefault(body.LoadBalancerStatus, lb.Status)
		}
	})
	if known && body.Tags != nil {
		tags := map[string]string{}
		for _, t := range *body.Tags {
			tags[t.TagKey] = t.TagValue
		}
		known = e.SetLoadBalancerTags(id, tags)
	}
	return known
}
