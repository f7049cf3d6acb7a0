package testkube

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// Namespace is the namespace of everything that this package makes.
const Namespace = "default"

// NewClientset returns a fake API server with the objects. It keeps no managed fields: with them every write would build a table
// of all types anew, which is most of what thousands of tests cost.
func NewClientset(objects ...runtime.Object) *fake.Clientset {
	return fake.NewSimpleClientset(objects...) //nolint:staticcheck // see above; nothing here applies on the server's side
}

// RoomForWatchers keeps the fake API server from a panic ("channel full") when an informer falls behind by more than 100 events, as
// it does on a busy machine. A TestMain calls it before the tests run.
func RoomForWatchers() { watch.DefaultChanSize = 1 << 13 }

// ErrorsDoNotWait keeps controllers from waiting after an error for decades: Kubernetes waits until a
// millisecond has passed since the last error of the process, which in a bubble with virtual time lies decades ahead. A TestMain
// calls it before the tests run.
func ErrorsDoNotWait() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// Fill puts objects into an informer's cache, as the watch of a real API server would. An object that is there is replaced.
func Fill[T any](tb testing.TB, informer cache.SharedIndexInformer, objects ...T) {
	tb.Helper()
	for _, object := range objects {
		testkit.Check(tb, informer.GetIndexer().Update(object))
	}
}

// Drain returns the events that a fake recorder has taken since the last call, as "Type Reason message".
func Drain(recorder *record.FakeRecorder) []string {
	var events []string
	for len(recorder.Events) > 0 {
		events = append(events, <-recorder.Events)
	}
	return events
}
