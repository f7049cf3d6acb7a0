package rollout

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// TestRunGivesUpOnPodsThatCannotStart: a node whose pod cannot start is reported at once, and fails long before the time limit. One that
// starts in the meantime goes on.
func TestRunGivesUpOnPodsThatCannotStart(t *testing.T) {
	t.Parallel()
	noImage := waits("ErrImagePull", "not found")
	for name, test := range map[string]struct {
		begin func(*corev1.Pod)
		// notCreated is why no pod can be created.
		notCreated string
		resumes    time.Duration // after which the pod ends well; 0 for never
		want       NodeState
		within     [2]time.Duration
	}{
		"image cannot be pulled": {
			begin: noImage, want: NodeState{Node: "a-set", Result: ResultFailed, Reason: "ErrImagePull: not found", Blocked: true},
			within: [2]time.Duration{stuckAfter, stuckAfter + 2*time.Second},
		},
		"no room": {
			begin: unschedulable, want: NodeState{Node: "a-set", Result: ResultFailed, Reason: "Unschedulable: too full", Blocked: true},
			within: [2]time.Duration{stuckAfter, stuckAfter + 2*time.Second},
		},
		"no reference of an image": {
			begin:  waits("InvalidImageName", "no"),
			want:   NodeState{Node: "a-set", Result: ResultFailed, Reason: "InvalidImageName: no", Blocked: true},
			within: [2]time.Duration{0, 2 * time.Second},
		},
		"no pod is admitted": {
			notCreated: `pods "a" is forbidden: exceeded quota: pods`,
			want: NodeState{Node: "a-set", Result: ResultFailed,
				Reason: `FailedCreate: Error creating: pods "a" is forbidden: exceeded quota: pods`, Blocked: true, NoPod: true},
			within: [2]time.Duration{stuckAfter + eventPeriod - time.Second, stuckAfter + eventPeriod + 2*time.Second},
		},
		"registry is back": {
			begin: noImage, resumes: stuckAfter - 10*time.Second, want: NodeState{Node: "a-set", ProviderID: "cn-hangzhou.i-1", Result: ResultSet},
			within: [2]time.Duration{stuckAfter - 10*time.Second, stuckAfter},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(test.begin, node("a-set", ""))
				reported := 2 * time.Second
				if test.notCreated != "" {
					c.refusesPods(t, test.notCreated)
					reported = 30 * time.Second
				}
				start, firstBlocked := time.Now(), time.Duration(-1)
				progress := func(states []NodeState) {
					if states[0].Blocked && firstBlocked < 0 {
						firstBlocked = time.Since(start)
					}
					if test.resumes == 0 || time.Since(start) < test.resumes || states[0].Result != ResultPending {
						return
					}
					pods, err := c.kube.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{})
					if err != nil || len(pods.Items) != 1 {
						t.Fatalf("pods are %v, error %v", pods, err)
					}
					endByName(&pods.Items[0])
					if _, err := c.kube.CoreV1().Pods("kube-system").UpdateStatus(t.Context(), &pods.Items[0], metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				got, err := c.rollout(t, Config{Driver: DriverJob}, progress).Run(t.Context())
				if diff := cmp.Diff([]NodeState{test.want}, got); err != nil || diff != "" {
					t.Errorf("error %v, states (-want +got):\n%s", err, diff)
				}
				if took := time.Since(start); took < test.within[0] || took > test.within[1] {
					t.Errorf("took %s, want %s", took, test.within)
				}
				if firstBlocked < 0 || firstBlocked > reported {
					t.Errorf("reported after %s", firstBlocked)
				}
				if left := c.left(t); len(left) > 0 {
					t.Errorf("left in the cluster: %q", left)
				}
			})
		})
	}
}

// refusesPods has events of the job say that no pod can be created, one of them of an earlier job of that name.
func (c *cluster) refusesPods(t *testing.T, why string) {
	t.Helper()
	c.noPods = true
	name := jobName(Config{Name: "test"}, "a-set")
	for uid, text := range map[types.UID]string{"uid-of-" + types.UID(name): why, "earlier": "that is over"} {
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: string(uid), Namespace: "kube-system"},
			InvolvedObject: corev1.ObjectReference{Kind: kindJob, Name: name, UID: uid}, Reason: reasonFailedCreate,
			Message: "Error creating: " + text,
		}
		if _, err := c.kube.CoreV1().Events("kube-system").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWithoutEvents: whoever may not read events goes on without.
func TestWithoutEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nil, node("a-set", ""))
		c.refusesPods(t, "full")
		c.kube.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no role"))
		})
		got, err := c.rollout(t, Config{Driver: DriverJob, Timeout: 3 * time.Minute}, nil).Run(t.Context())
		want := []NodeState{{Node: "a-set", Result: ResultPending, Reason: "there is no pod yet"}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v, states (-want +got):\n%s", err, diff)
		}
	})
}

// TestPatience: only one that has been blocked all the time is given up, whatever the reason was in between.
func TestPatience(t *testing.T) {
	t.Parallel()
	start := time.Now()
	waiting := &patience{since: map[string]time.Time{}}
	at := func(after time.Duration, blocked bool) Result {
		states := []NodeState{{Node: "a", Result: ResultPending, Blocked: blocked}}
		waiting.judge(states, start.Add(after))
		return states[0].Result
	}
	for _, step := range []struct {
		after   time.Duration
		blocked bool
		want    Result
	}{
		{0, true, ResultPending}, {stuckAfter - 1, true, ResultPending}, {stuckAfter - 1, false, ResultPending},
		{stuckAfter, true, ResultPending}, {2*stuckAfter - 1, true, ResultPending}, {2 * stuckAfter, true, ResultFailed},
		{2*stuckAfter + 1, false, ResultPending},
	} {
		if got := at(step.after, step.blocked); got != step.want {
			t.Errorf("after %s, blocked %t: %s, want %s", step.after, step.blocked, got, step.want)
		}
	}
}

// TestPatienceWithAQuota: pods that end make room in a quota, so that nodes without a pod wait as long as others finish.
func TestPatienceWithAQuota(t *testing.T) {
	t.Parallel()
	start, waiting := time.Now(), &patience{since: map[string]time.Time{}}
	at := func(after time.Duration, other Result) Result {
		states := []NodeState{{Node: "a", Result: ResultPending, Blocked: true, NoPod: true}, {Node: "b", Result: other}}
		waiting.judge(states, start.Add(after))
		return states[0].Result
	}
	for _, step := range []struct {
		after time.Duration
		other Result
		want  Result
	}{
		{0, ResultPending, ResultPending}, {stuckAfter - 1, ResultSet, ResultPending}, {stuckAfter, ResultSet, ResultPending},
		{2*stuckAfter - 2, ResultSet, ResultPending}, {2*stuckAfter - 1, ResultSet, ResultFailed}, {2 * stuckAfter, ResultSet, ResultFailed},
	} {
		if got := at(step.after, step.other); got != step.want {
			t.Errorf("after %s, the other node %s: %s, want %s", step.after, step.other, got, step.want)
		}
	}
}
