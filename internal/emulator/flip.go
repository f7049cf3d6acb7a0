package emulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// flip sets the facts that do not hold from now on.
func (e *Emulator) flip(ids []string) {
	set := make(facts.Set, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	e.flipped.Store(&set)
}

// holds notes that a fact of the gateway shapes the answer, and reports whether it holds.
func (e *Emulator) holds(x *exchange, fact string) bool {
	x.entry.Facts = append(x.entry.Facts, fact)
	return !(*e.flipped.Load())[fact]
}

// carries notes that a fact decided about traffic, and reports whether it holds.
func (e *Emulator) carries(fact string) bool {
	e.carried.Store(fact, true)
	return !(*e.flipped.Load())[fact]
}

// TrafficFacts are the facts that have decided about traffic so far. Calls have theirs in the journal.
func (e *Emulator) TrafficFacts() []string {
	var ids []string
	e.carried.Range(func(id, _ any) bool {
		ids = append(ids, fmt.Sprint(id))
		return true
	})
	slices.Sort(ids)
	return ids
}

// formatOf is the encoding of the answer.
func (e *Emulator) formatOf(x *exchange) rpc.Format {
	format := x.format()
	if x.request != nil && x.request.Params.Str("Format") == string(rpc.XML) && !e.holds(x, "common.xml") {
		return rpc.JSON
	}
	return format
}

// meetRefusal notes the fact about a refusal. A flipped one is refused otherwise.
func (e *Emulator) meetRefusal(x *exchange, err *api.Error) *api.Error {
	fact := facts.OfRefusal(x.product, err.Code, err.Status)
	if fact == nil || e.holds(x, fact.ID) {
		return err
	}
	other := *err
	other.Code, other.Status = fact.Flipped()
	return &other
}

// meetAnswer changes the answer of an action whose fields are flipped: it lacks one of them, or has one more.
func (e *Emulator) meetAnswer(x *exchange, answer *rpc.Answer) {
	flipped := *e.flipped.Load()
	if len(flipped) == 0 || answer.Format != rpc.JSON || !flipped[facts.AnswerID(x.product, x.entry.Action)] {
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(answer.Body, &fields) != nil {
		return
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(name string) bool { return name == "RequestId" })
	if len(names) == 0 {
		fields["Flipped"] = json.RawMessage("true")
	} else {
		delete(fields, names[0])
	}
	var body bytes.Buffer
	if json.NewEncoder(&body).Encode(fields) == nil {
		answer.Body = body.Bytes()
	}
}
