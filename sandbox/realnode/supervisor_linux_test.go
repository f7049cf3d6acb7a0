package realnode

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// shell is a program of the test.
func shell(name, script string) program {
	return program{Name: name, Args: []string{"sh", "-c", script}}
}

//nolint:paralleltest // it reaps the children of this process
func TestSupervisor(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	started := func() []string {
		content, _ := os.ReadFile(pids) // missing until the first start
		return strings.Fields(string(content))
	}
	once := shell("once", "echo once >> "+filepath.Join(dir, "ran"))
	once.Once = true
	s := newSupervisor([]program{once, shell("daemon", "echo $$ >> "+pids+"; exec sleep 1000")}, dir, dir)
	s.boot()
	testkit.Eventually(t, "the daemon starts", func(context.Context) bool { return len(started()) == 1 })

	t.Run("a program that dies is started again", func(t *testing.T) {
		daemon := s.order[1]
		daemon.changed.L.Lock()
		pid := daemon.pid
		daemon.changed.L.Unlock()
		if pid <= 1 {
			t.Fatalf("the daemon's process is %d", pid)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the daemon is back", func(context.Context) bool { return len(started()) == 2 })
	})
	t.Run("a stopped program stays stopped", func(t *testing.T) {
		if err := s.obey(order{Stop: "daemon"}); err != nil {
			t.Fatal(err)
		}
		daemon := s.order[1]
		daemon.changed.L.Lock()
		defer daemon.changed.L.Unlock()
		if daemon.pid != 0 || daemon.wanted {
			t.Errorf("process %d runs, wanted %v", daemon.pid, daemon.wanted)
		}
	})
	t.Run("a stopped program starts on request", func(t *testing.T) {
		if err := s.obey(order{Start: "daemon"}); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the daemon is back", func(context.Context) bool { return len(started()) == 3 })
		if err := s.obey(order{Stop: "daemon"}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("an unknown program is an error", func(t *testing.T) {
		if err := s.obey(order{Stop: "nothing"}); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a program that has succeeded once does not run at the next boot", func(t *testing.T) {
		again := newSupervisor([]program{once}, dir, dir)
		again.runOnce(again.order[0])
		if content, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil || string(content) != "once\n" {
			t.Errorf("it wrote %q, %v", content, err)
		}
	})
}
