package emulator

import (
	"fmt"
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
	var err error
	e.store.Update(func() {
		s := Settings{e.store.Switches, e.store.Limits}
		change(&s)
		if err = s.Check(); err == nil {
			e.store.Switches, e.store.Limits = s.Switches, s.Quotas
			e.flip(s.Flipped)
		}
	})
	return err
}

func (e *Emulator) getSettings(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, e.Settings())
}

// putSettings changes the settings that the body names; the others stay.
func (e *Emulator) putSettings(w http.ResponseWriter, r *http.Request) {
	s := e.Settings()
	err := decode(r, &s)
	if err == nil {
		err = e.Change(func(now *Settings) { *now = s })
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

// putLoadBalancer sets the status or the tags of a CLB, or the locks of an NLB.
func (e *Emulator) putLoadBalancer(w http.ResponseWriter, r *http.Request) {
	var body struct {
		LoadBalancerStatus string
		Tags               *[]struct{ TagKey, TagValue string }
		OperationLocks     *[]struct{ LockReason string }
	}
	err := decode(r, &body)
	if err == nil {
		err = oneOf("LoadBalancerStatus", body.LoadBalancerStatus, "", cloud.Active, cloud.Inactive, cloud.Locked)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	id, known := r.PathValue("id"), false
	if body.OperationLocks != nil {
		var reasons []string
		for _, lock := range *body.OperationLocks {
			reasons = append(reasons, lock.LockReason)
		}
		if e.SetNLBLocks(id, reasons...) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	e.store.Update(func() {
		var lb *cloud.LoadBalancer
		if lb, known = e.store.LoadBalancers.Get(id); known {
			lb.Status = cloud.OrDefault(body.LoadBalancerStatus, lb.Status)
		}
	})
	if !known {
		refuse(w, http.StatusNotFound, fmt.Errorf("load balancer %s does not exist", id))
		return
	}
	if body.Tags != nil {
		tags := map[string]string{}
		for _, t := range *body.Tags {
			tags[t.TagKey] = t.TagValue
		}
		e.SetLoadBalancerTags(id, tags)
	}
	e.fabric.Sync()
	w.WriteHeader(http.StatusNoContent)
}
