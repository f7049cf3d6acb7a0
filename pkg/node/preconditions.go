package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
)

// permitAge is how long a Node may be deleted after its instance was found to be gone. The stock controller deletes it at
// once.
const permitAge = 30 * time.Second

// DeletionPermits are the Nodes that may be deleted, each as the object that was examined. It is safe for concurrent use.
type DeletionPermits struct{ nodes *cache.Expiring } // preconditions by name

// NewDeletionPermits returns an empty set.
func NewDeletionPermits() *DeletionPermits { return &DeletionPermits{cache.NewExpiring()} }

func (p *DeletionPermits) allow(node *corev1.Node) {
	uid, version := node.UID, node.ResourceVersion
	p.nodes.Set(node.Name, metav1.Preconditions{UID: &uid, ResourceVersion: &version}, permitAge)
}

// take returns the preconditions of the node's deletion, once.
func (p *DeletionPermits) take(name string) (metav1.Preconditions, bool) {
	found, _ := p.nodes.Get(name)
	p.nodes.Delete(name)
	preconditions, ok := found.(metav1.Preconditions)
	return preconditions, ok
}

// Transport returns a transport for the client of the stock node-lifecycle controller, which deletes Nodes by name only.
// It adds UID and resource version to each DELETE of a Node, so that neither a new Node of the same name nor one that has
// become ready since is deleted, and refuses to delete a Node that [Instances.InstanceExists] did not call gone just before.
// All other requests pass unchanged.
func (p *DeletionPermits) Transport(next http.RoundTripper) http.RoundTripper {
	return guardedTransport{next: next, permits: p}
}

type guardedTransport struct {
	next    http.RoundTripper
	permits *DeletionPermits
}

// RoundTrip implements [http.RoundTripper].
func (t guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	name, ok := deletedNode(request)
	if !ok {
		return t.next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close() // it holds the stock controller's empty options
	}
	preconditions, ok := t.permits.take(name)
	if !ok {
		return nil, fmt.Errorf("delete node %s: its instance was not found to be gone just before", name)
	}
	options := metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		Preconditions: &preconditions,
	}
	body, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encode the options to delete node %s: %w", name, err)
	}
	guarded := request.Clone(request.Context())
	guarded.Body, guarded.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	guarded.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	guarded.Header.Set("Content-Type", "application/json")
	return t.next.RoundTrip(guarded)
}

// deletedNode returns the name of the Node that the request deletes. A DELETE of all nodes has the empty name, which nothing permits.
func deletedNode(request *http.Request) (string, bool) {
	if request.Method != http.MethodDelete {
		return "", false
	}
	_, name, ok := strings.Cut(request.URL.Path+"/", "/api/v1/nodes/")
	name = strings.Trim(name, "/")
	return name, ok && !strings.Contains(name, "/")
}
