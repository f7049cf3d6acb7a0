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
func (e *env) nodeReads(since time.Time) (n int, err error) { return e.requests("get", since) }

// nodeLists counts the lists of Nodes.
func (e *env) nodeLists(since time.Time) (n int, err error) { return e.requests("list", since) }

// requests counts the requests about Nodes with a verb.
func (e *env) requests(verb string, since time.Time) (n int, err error) {
	file, err := os.Open(e.path(auditFile))
	if err != nil {
		return 0, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return countNodeRequests(file, verb, since)
}

func countNodeRequests(log io.Reader, verb string, since time.Time) (int, error) {
	found, all := 0, 0
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
		if request.Verb == verb && request.ObjectRef.Resource == "nodes" && !request.RequestReceivedTimestamp.Before(since) {
			found++
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	if all == 0 {
		return 0, errors.New("the audit log is empty, although the manager has asked for its Lease")
	}
	return found, nil
}
