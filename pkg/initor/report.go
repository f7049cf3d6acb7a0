package initor

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteReport writes r as JSON into the file at path, which in a pod is the container's termination log: whoever started
// the pod then reads from its status what was done, without access to logs.
func WriteReport(path string, r Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	// The kubelet has made the file already, with a mode of its own.
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("report the result: %w", err)
	}
	return nil
}

// ParseReport reads what [WriteReport] wrote. It says false for anything else, for example the log lines that a kubelet puts
// in the place of an empty report.
func ParseReport(text string) (Result, bool) {
	var r Result
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Result{}, false
	}
	switch r.Outcome {
	case OutcomeSet, OutcomeUnchanged, OutcomeSkipped:
		return r, true
	default:
		return Result{}, false
	}
}
