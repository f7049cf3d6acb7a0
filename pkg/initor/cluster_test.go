package initor

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
)

// cluster is an API server with one node. Unlike the bare fake clientset it refuses a patch of an outdated or replaced
// object and a change of a provider ID, as the real one does.
type cluster struct {
	client *fake.Clientset

	mu          sync.Mutex // guards what follows
	getErrors   []error    // returned by the next reads; nil lets one pass
	patchErrors []error    // returned by the next writes before they are looked at; nil lets one pass
	beforePatch func()     // runs once, when the next write arrives
	patches     int        // writes that arrived
}

func newCluster(n *corev1.Node) *cluster {
	c := &cluster{client: fake.NewClientset(n)}
	c.client.PrependReactor("get", "nodes", c.onGet)
	c.client.PrependReactor("patch", "nodes", c.onPatch)
	return c
}

func (c *cluster) nodes() typedcorev1.NodeInterface { return c.client.CoreV1().Nodes() }

// node returns the node as it is stored.
func (c *cluster) node(t *testing.T) *corev1.Node {
	t.Helper()
	stored, err := c.stored()
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func (c *cluster) stored() (*corev1.Node, error) {
	stored, err := c.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", "node-1")
	if err != nil {
		return nil, err
	}
	n, ok := stored.(*corev1.Node)
	if !ok {
		return nil, fmt.Errorf("a %T is stored", stored)
	}
	return n.DeepCopy(), nil
}

// change edits the stored node as another client would.
func (c *cluster) change(edit func(*corev1.Node)) error {
	n, err := c.stored()
	if err != nil {
		return err
	}
	edit(n)
	version, err := strconv.Atoi(n.ResourceVersion)
	if err != nil {
		return err
	}
	n.ResourceVersion = strconv.Itoa(version + 1)
	return c.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, "")
}

func (c *cluster) onGet(clienttesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := next(&c.getErrors)
	return err != nil, nil, err
}

func (c *cluster) onPatch(action clienttesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patches++
	if err := next(&c.patchErrors); err != nil {
		return true, nil, err
	}
	if hook := c.beforePatch; hook != nil {
		c.beforePatch = nil
		hook()
	}
	n, err := c.patched(action)
	return true, n, err
}

func (c *cluster) patched(action clienttesting.Action) (*corev1.Node, error) {
	patch, ok := action.(clienttesting.PatchAction)
	if !ok {
		return nil, fmt.Errorf("a %T is not a patch", action)
	}
	var sent corev1.Node
	if err := json.Unmarshal(patch.GetPatch(), &sent); err != nil {
		return nil, err
	}
	have, err := c.stored()
	if err != nil {
		return nil, err
	}
	resource := corev1.Resource("nodes")
	if sent.UID != have.UID || sent.ResourceVersion != have.ResourceVersion {
		return nil, apierrors.NewConflict(resource, have.Name, fmt.Errorf("the object has been modified"))
	}
	if have.Spec.ProviderID != "" {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), have.Name, nil)
	}
	if err := c.change(func(n *corev1.Node) { n.Spec.ProviderID = sent.Spec.ProviderID }); err != nil {
		return nil, err
	}
	return c.stored()
}

// next takes the first error off the list.
func next(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}
