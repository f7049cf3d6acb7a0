package facts

import (
	"encoding/json"
	"fmt"
	"os"
)

// Flip is what make flips found out about one fact: the tests that met it were run while it did not hold.
type Flip struct {
	// Ran is how many tests that was.
	Ran int `json:"ran"`
	// Failed are those that failed, by package.
	Failed map[string][]string `json:"failed,omitempty"`
	// Note says what the failures mean for a cluster, in the words of whoever read them.
	Note string `json:"note,omitempty"`
}

// ReadFlips reads the file of make flips, by fact.
func ReadFlips(path string) (map[string]Flip, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the flipped facts: %w", err)
	}
	flips := map[string]Flip{}
	if err := json.Unmarshal(data, &flips); err != nil {
		return nil, fmt.Errorf("read the flipped facts: %w", err)
	}
	return flips, nil
}
