package conformance

import (
	"encoding/json"
	"fmt"
	"os"
)

// Format is the version of the form of documents.
const Format = 1

// Document is what one run asked and was answered, without secrets and with names in the place of ids.
type Document struct {
	Format int `json:"format"`
	// Real says that a real account answered, not an emulator.
	Real bool `json:"real"`
	// Date is the day of the run, for example 2027-01-02.
	Date      string      `json:"date"`
	Region    string      `json:"region"`
	Scenarios []Recording `json:"scenarios"`
}

// Recording is one scenario as it ran.
type Recording struct {
	Name string `json:"name"`
	// Skipped is why the scenario did not run.
	Skipped   string     `json:"skipped,omitempty"`
	Exchanges []Exchange `json:"exchanges,omitempty"`
	Findings  []Finding  `json:"findings,omitempty"`
}

// Exchange is one call with its last answer: refusals that end by themselves and polls are left out.
type Exchange struct {
	// Facts are those that the exchange checks.
	Facts      []string          `json:"facts,omitempty"`
	Product    string            `json:"product,omitempty"`
	Action     string            `json:"action,omitempty"`
	Variant    Variant           `json:"variant,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// Experiment is the name of an experiment instead, and Observations are what it has seen.
	Experiment   string        `json:"experiment,omitempty"`
	Observations []Observation `json:"observations,omitempty"`
	// Admin is a call of the emulator's own API instead.
	Admin *Admin `json:"admin,omitempty"`
	// Until are values for which the call is repeated.
	Until  map[string]any `json:"until,omitempty"`
	Status int            `json:"status,omitempty"`
	Code   string         `json:"code,omitempty"`
	Body   any            `json:"body,omitempty"`
	// Observed are the values on which facts depend, by their path in the body.
	Observed map[string]any `json:"observed,omitempty"`
}

// Admin is a call of the emulator's own API.
type Admin struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body"`
}

// Finding is a fact that does not hold.
type Finding struct {
	Fact string `json:"fact"`
	Call string `json:"call"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: want %s, got %s", f.Fact, f.Call, f.Want, f.Got)
}

// Read reads a document from a file.
func Read(path string) (Document, error) {
	var d Document
	data, err := os.ReadFile(path)
	if err != nil {
		return d, fmt.Errorf("read the recording: %w", err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, fmt.Errorf("read the recording %s: %w", path, err)
	}
	if d.Format != Format {
		return d, fmt.Errorf("the recording %s has format %d, not %d", path, d.Format, Format)
	}
	return d, nil
}

// Write writes the document to a file.
func (d Document) Write(path string) error {
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("encode the recording: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

// Findings are all findings of the document.
func (d Document) Findings() []Finding {
	var all []Finding
	for _, r := range d.Scenarios {
		all = append(all, r.Findings...)
	}
	return all
}

// Checked are the facts that the document checks, with the names of the scenarios that do.
func (d Document) Checked() map[string][]string {
	checked := map[string][]string{}
	for _, r := range d.Scenarios {
		seen := map[string]bool{}
		for _, x := range r.Exchanges {
			for _, fact := range x.Facts {
				if !seen[fact] {
					seen[fact] = true
					checked[fact] = append(checked[fact], r.Name)
				}
			}
		}
	}
	return checked
}
