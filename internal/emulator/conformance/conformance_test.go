package conformance_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// settle is the time of asynchronous changes. It passes at once: all tests run in virtual time.
const settle = 2 * time.Second

// emulated starts the emulator of the scenarios. Flips are facts that do not hold.
func emulated(t *testing.T, flips ...string) (*emulator.Emulator, conformance.Options) {
	t.Helper()
	e, o, err := conformance.Emulated(settle, flips...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		emulatortest.WriteFacts(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, o
}

// record runs scenarios on an emulator of their own.
func record(t *testing.T, flip string, names ...string) conformance.Document {
	t.Helper()
	var flips []string
	if flip != "" {
		flips = append(flips, flip)
	}
	e, o, err := conformance.Emulated(settle, flips...)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	o.Scenarios = names
	d, err := conformance.Run(t.Context(), o)
	if err != nil && flip == "" {
		t.Fatal(err)
	}
	return d
}

// TestEmulatorConforms: every fact that calls can show is checked by a scenario, and holds in the emulator.
func TestEmulatorConforms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, o := emulated(t)
		d, err := conformance.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Findings() {
			t.Error(f)
		}
		for _, r := range d.Scenarios {
			if r.Skipped != "" {
				t.Errorf("%s was skipped: %s", r.Name, r.Skipped)
			}
		}
		checked := d.Checked()
		for _, f := range allFacts(e) {
			if f.Flippable() && len(checked[f.ID]) == 0 {
				t.Errorf("no scenario checks %s", f.ID)
			}
		}
	})
}

// allFacts are the facts of the tables, and those about the answers of all actions.
func allFacts(e *emulator.Emulator) []facts.Fact {
	all := facts.All()
	for _, p := range e.Actions().Products() {
		for _, a := range p.Actions {
			all = append(all, facts.Answer(p.Name, a.Name))
		}
	}
	return all
}

// TestReplayFindsEveryFlippedFact: a recording of a cloud in which one fact is otherwise differs from the emulator, and the difference names that fact; a recording
// of the emulator itself is not.
func TestReplayFindsEveryFlippedFact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whole := record(t, "")
		for _, r := range whole.Scenarios {
			for _, f := range replay(t, r) {
				t.Errorf("the emulator differs from itself: %s: %s", r.Name, f)
			}
		}
		e, _ := emulated(t)
		checked, flipped, found := whole.Checked(), 0, 0
		for _, f := range allFacts(e) {
			if !f.Flippable() {
				continue
			}
			flipped++
			if finds(t, f, checked[f.ID]) {
				found++
			} else {
				t.Errorf("no replay of %v finds that %s is flipped", checked[f.ID], f.ID)
			}
		}
		t.Logf("%d of %d flipped facts found", found, flipped)
	})
}

// finds reports whether a replay of one of the scenarios names the fact, when they were recorded with it flipped.
func finds(t *testing.T, f facts.Fact, scenarios []string) bool {
	t.Helper()
	for _, name := range scenarios {
		for _, r := range record(t, f.Switch(), name).Scenarios {
			if slices.ContainsFunc(replay(t, r), func(d conformance.Finding) bool { return d.Fact == f.ID }) {
				return true
			}
		}
	}
	return false
}

// replay repeats a recording on an emulator of its own.
func replay(t *testing.T, r conformance.Recording) []conformance.Finding {
	t.Helper()
	e, o, err := conformance.Emulated(settle)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	findings, err := conformance.Replay(t.Context(), o, r)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// TestRunLeavesNothing: also where scenarios end early because a fact does not hold.
func TestRunLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		for _, s := range conformance.Scenarios() {
			if s.Name != conformance.Subscription {
				o.Scenarios = append(o.Scenarios, s.Name)
			}
		}
		if _, err := conformance.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // deletions end
		left, err := conformance.Clean(t.Context(), o)
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// TestDocumentHasNoSecrets: neither keys nor ids of the account are in a document.
func TestDocumentHasNoSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := record(t, "")
		path := t.TempDir() + "/document.json"
		if err := d.Write(path); err != nil {
			t.Fatal(err)
		}
		text := read(t, path)
		_, o := emulated(t)
		secrets := map[string]string{
			"secret": o.Key.Secret, "account": "1000000000000000", "VPC": o.Environment.VPC, "instance": o.Environment.Instances[0],
			"private key": "PRIVATE KEY", "secret of a disabled key": o.Environment.Disabled.Secret, "private address": `"10.1.0.`, "public address": "198.18.",
		}
		for _, name := range slices.Sorted(maps.Keys(secrets)) {
			if i := strings.Index(text, secrets[name]); i >= 0 {
				t.Errorf("the document has the %s: …%s…", name, text[max(0, i-120):min(len(text), i+60)])
			}
		}
		again, err := conformance.Read(path)
		if err != nil || len(again.Scenarios) != len(d.Scenarios) {
			t.Errorf("read %d scenarios, %v", len(again.Scenarios), err)
		}
	})
}
