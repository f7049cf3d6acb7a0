package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// auditFile is the API server's audit log. It has a line for each request of a ServiceAccount, and the manager's is the only one here.
const auditFile = "audit.log"

// nodeReads counts the reads of single Nodes that reached the API server since. What a program reads in its own caches is not among them.
func (e *env) nodeReads(since time.Time) (n int, err error) {
	file, err := os.Open(e.path(auditFile))
	if err != nil {
		return 0, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return countNodeReads(file, since)
}

func countNodeReads(log io.Reader, since time.Time) (int, error) {
	reads, all := 0, 0
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for ; lines.Scan(); all++ {
		var request struct {
			Verb                     string
			ObjectRef                struct{ Resource, Subresource string }
			RequestReceivedTimestamp time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return 0, fmt.Errorf("read line %d of the audit log: %w", all+1, err)
		}
		if request.Verb == "get" && request.ObjectRef.Resource == "nodes" && !request.RequestReceivedTimestamp.Before(since) {
			reads++
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	if all == 0 {
		return 0, errors.New("the audit log is empty, although the manager has asked for its Lease")
	}
	return reads, nil
}
