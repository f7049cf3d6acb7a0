package conformance_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
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
	o.Experiments = true
	t.Cleanup(func() {
		emulatortest.WriteFacts(t, e, e.TrafficFacts()...)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, o
}

// record runs scenarios on an emulator of their own. The document has no secrets, also where facts do not hold and differences quote
// answers.
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
	o.Scenarios, o.Experiments = names, true
	d, err := conformance.Run(t.Context(), o)
	if err != nil && flip == "" {
		t.Fatal(err)
	}
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	noSecrets(t, "the document with "+flip, string(data), o)
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

// TestReplayFindsEveryFlippedFact: a recording of a cloud in which one fact is otherwise differs from the emulator, and the difference
// names that fact; a recording of the emulator itself is not.
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
		for i, f := range allFacts(e) {
			if !f.Flippable() || !testkit.Tried(i, 8) {
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

// TestDocumentHasNoSecrets: neither keys nor ids of the account are in a document, and what is left can be read again.
func TestDocumentHasNoSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := record(t, "") // it looks for secrets
		path := t.TempDir() + "/document.json"
		if err := d.Write(path); err != nil {
			t.Fatal(err)
		}
		again, err := conformance.Read(path)
		if err != nil || len(again.Scenarios) != len(d.Scenarios) {
			t.Errorf("read %d scenarios, %v", len(again.Scenarios), err)
		}
	})
}

// realIDs are IDs that a cloud has given to something: the ones that scenarios make up have no digits but 0.
var realIDs = regexp.MustCompile(`\b(lb|nlb|vtb|rte|i|eni|sg|sgr|eip|acl|rsp|sgp|lsn|vsw|vpc)-[a-z0-9]*[1-9][a-z0-9]{5,}\b`)

// noSecrets finds what must not leave an account.
func noSecrets(t *testing.T, what, text string, o conformance.Options) {
	t.Helper()
	secrets := map[string]string{
		"secret": o.Key.Secret, "account": o.Environment.Account, "VPC": o.Environment.VPC, "instance": o.Environment.Instances[0],
		"private key": "PRIVATE KEY", "secret of a disabled key": o.Environment.Disabled.Secret, "private address": "10.1.0.",
		"public address": "198.18.",
		"temporary key":  "STS.", "zone": "cn-hangzhou-a", "signature": `"Signature"`, "name of a role": "role/emulator-role",
		"MAC address": "00:16:3e",
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if i := strings.Index(text, secrets[name]); i >= 0 {
			t.Errorf("%s has the %s: …%s…", what, name, text[max(0, i-120):min(len(text), i+60)])
		}
	}
	if id := realIDs.FindString(text); id != "" {
		t.Errorf("%s has the ID %s", what, id)
	}
}

// answering answers one action with another body.
type answering struct {
	http.RoundTripper
	action, body string
}

func (a answering) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(request)
	if err == nil && request.URL.Query().Get("Action") == a.action {
		response.Body = io.NopCloser(strings.NewReader(a.body))
	}
	return response, err
}

// TestDocumentHidesWhatAnAccountAnswers: users, hosts, numbers and addresses in forms that the emulator does not answer.
func TestDocumentHidesWhatAnAccountAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		body := `{"RequestId":"4C467B38-3910-447D-87BC-AC049166F216","Arn":"acs:ram::1719446390273214:user/alice@example.com","UserId":"216959339000654321",
			"OwnerId":1719446390273214,"HostName":"iZbp67acfmxazb4p","SerialNumber":"51d1353b-22bf-4567-a176-8b3e12e43135","KeyPairName":"alice-laptop","VpcName":"acme-prod",
			"Endpoint":"47.96.12.34:443","Note":"from 2408:4005:300::1 and 192.168.7.8","SourceIp":"47.96.12.35","SecurityToken":"CAISabc","AccessKeyId":"LTAI5tabc",
			"Hosts":["nlb-secret.example.com"],"ResourceArn":"acs:slb:cn-hangzhou:1719446390273214:loadbalancer/lb-bp1secret"}`
		o.Transport = answering{o.Transport, "GetCallerIdentity", body}
		o.Scenarios = []string{"sts/identity"}
		d, err := conformance.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{
			"4C467B38", "1719446390273214", "1.719", "alice", "216959339", "iZbp67", "51d1353b", "acme", "47.96", "192.168.7", "2408:4005", "CAIS",
			"LTAI", "lb-bp1",
		} {
			if i := strings.Index(string(data), secret); i >= 0 {
				t.Errorf("the document has %s: …%s…", secret, data[max(0, i-60):min(len(data), i+40)])
			}
		}
	})
}

// TestNoAnswerShowsNoKey: the error of a call without an answer names the call, not its URL with the key, the signature and the token.
func TestNoAnswerShowsNoKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		o.Key = conformance.Key{ID: "STS.secretkey", Secret: "secret", Token: "secrettoken"}
		o.Transport = &killed{next: o.Transport}
		o.Scenarios = []string{"common/signatures", "common/requests"}
		_, err := conformance.Run(t.Context(), o)
		_, cleaning := conformance.Clean(t.Context(), o)
		for _, err := range []error{err, cleaning} {
			if !errors.Is(err, errKilled) {
				t.Fatalf("ended with %v", err)
			}
			for _, secret := range []string{"secret", "Signature=", "http://"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q in: %v", secret, err)
				}
			}
		}
	})
}
