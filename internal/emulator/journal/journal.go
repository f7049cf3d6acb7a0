// Package journal remembers the OpenAPI calls that arrived, in order, whatever became of them.
package journal

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// Call is one entry.
type Call struct {
	Seq         int64      `json:"seq"`
	Time        time.Time  `json:"time"`
	Product     string     `json:"product"`
	Action      string     `json:"action"`
	Kind        api.Kind   `json:"kind"`
	Parameters  api.Params `json:"parameters"`
	Status      int        `json:"status"`
	Code        string     `json:"code"`
	RequestID   string     `json:"requestId"`
	AccessKeyID string     `json:"accessKeyId"`
	Dropped     string     `json:"dropped"`
	// Hidden says that the answer lacks something because of a lag.
	Hidden bool `json:"hidden,omitempty"`
	// Facts are the ids of the facts that shaped the answer; that about the answer of the action itself is not among them.
	Facts []string `json:"facts,omitempty"`
}

// defaultLimit is how many calls are kept in memory; older ones are forgotten. A call takes about 1 KiB.
const defaultLimit = 100_000

// Journal keeps the last calls. It is safe for concurrent use.
type Journal struct {
	mu sync.Mutex
	// ring holds the calls in order from start; guarded by mu like everything below.
	ring  []Call
	start int
	limit int
	seq   int64
	out   *json.Encoder
}

// New makes a journal of at most limit calls (0 = defaultLimit) that also writes each as a line of JSON to out unless nil.
func New(limit int, out io.Writer) *Journal {
	if limit <= 0 {
		limit = defaultLimit
	}
	j := &Journal{limit: limit}
	if out != nil {
		j.out = json.NewEncoder(out)
	}
	return j
}

// Add appends a call and gives it its number.
func (j *Journal) Add(c Call) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	c.Seq = j.seq
	if len(j.ring) < j.limit {
		j.ring = append(j.ring, c)
	} else {
		j.ring[j.start] = c
		j.start = (j.start + 1) % j.limit
	}
	if j.out == nil {
		return nil
	}
	return j.out.Encode(c)
}

// After returns the calls with a number above seq, in order.
func (j *Journal) After(seq int64) []Call {
	j.mu.Lock()
	defer j.mu.Unlock()
	// The numbers are contiguous, so that the first wanted one is found without a search.
	first := j.seq - int64(len(j.ring)) + 1
	from := min(max(seq+1-first, 0), int64(len(j.ring)))
	calls := make([]Call, 0, int64(len(j.ring))-from)
	for i := int(from); i < len(j.ring); i++ {
		calls = append(calls, j.ring[(j.start+i)%len(j.ring)])
	}
	return calls
}

// Clear forgets the calls; the numbers go on.
func (j *Journal) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring, j.start = nil, 0
}
