package realnode

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// restartDelay keeps a program that ends by itself from taking the machine's whole time.
	restartDelay = time.Second
	// socketPoll is short against the time that containerd needs to start.
	socketPoll = 20 * time.Millisecond
	// stopTimeout is how long a program may take to stop before it is killed.
	stopTimeout = 10 * time.Second
	// machinePath is where programs of a machine look for others.
	machinePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// supervisor starts the programs of a machine, starts them again when they end, and buries the orphans of its process namespace.
type supervisor struct {
	order []*unit
	// logs takes what programs print, done remembers over reboots which ones have done what they do once.
	logs, done string

	mu       sync.Mutex
	children map[int]chan<- unix.WaitStatus // by process id; guarded by mu
}

// unit is a program with what is to become of it.
type unit struct {
	program
	changed *sync.Cond // signals changes of what follows, which its lock guards
	wanted  bool
	pid     int // 0 while it does not run
}

func newSupervisor(programs []program, logs, done string) *supervisor {
	s := &supervisor{logs: logs, done: done, children: map[int]chan<- unix.WaitStatus{}}
	for _, p := range programs {
		s.order = append(s.order, &unit{program: p, changed: sync.NewCond(&sync.Mutex{}), wanted: true})
	}
	return s
}

// boot starts the programs in the background.
func (s *supervisor) boot() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		for range died {
			s.reap()
		}
	}()
	go func() {
		for _, u := range s.order {
			if u.Once {
				s.runOnce(u)
				continue
			}
			go s.keepRunning(u)
			waitSocket(u.Socket)
		}
	}()
}

// reap takes the exit status of every process that has ended, also of those that lost their parents.
func (s *supervisor) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
		s.mu.Lock()
		if ended := s.children[pid]; ended != nil {
			ended <- status
			delete(s.children, pid)
		}
		s.mu.Unlock()
	}
}

// start runs a program; the channel takes its exit status.
func (s *supervisor) start(p program) (int, <-chan unix.WaitStatus, error) {
	path, err := exec.LookPath(p.Args[0])
	if err != nil {
		return 0, nil, err
	}
	log, err := os.OpenFile(filepath.Join(s.logs, p.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	// Held until the child is known: it may end before this function does.
	s.mu.Lock()
	defer s.mu.Unlock()
	process, err := os.StartProcess(path, p.Args, &os.ProcAttr{
		Files: []*os.File{null, log, log},
		Env:   append([]string{"PATH=" + machinePath, "HOME=/root"}, p.Env...),
	})
	if err != nil {
		return 0, nil, err
	}
	// Read before Release, which makes it -1: as the target of a signal that is every process there is.
	pid := process.Pid
	ended := make(chan unix.WaitStatus, 1)
	s.children[pid] = ended
	return pid, ended, process.Release()
}

// runOnce returns when a program has succeeded, now or at an earlier boot.
func (s *supervisor) runOnce(u *unit) {
	done := filepath.Join(s.done, u.Name)
	for {
		if _, err := os.Stat(done); err == nil {
			return
		}
		if _, ended, err := s.start(u.program); err != nil {
			complain(u.Name, err)
		} else if status := <-ended; status.ExitStatus() != 0 {
			complain(u.Name, fmt.Errorf("exit status %d", status.ExitStatus()))
		} else if err := os.WriteFile(done, nil, 0o600); err == nil {
			return
		}
		time.Sleep(restartDelay) //nolint:forbidigo // the first process of a machine ends with it
	}
}

// keepRunning runs a program whenever it is wanted.
func (s *supervisor) keepRunning(u *unit) {
	for {
		u.changed.L.Lock()
		for !u.wanted {
			u.changed.Wait()
		}
		pid, ended, err := s.start(u.program)
		u.pid = pid
		u.changed.L.Unlock()
		if err == nil {
			status := <-ended
			err = fmt.Errorf("ended with exit status %d", status.ExitStatus())
		}
		u.changed.L.Lock()
		u.pid = 0
		u.changed.Broadcast()
		wanted := u.wanted
		u.changed.L.Unlock()
		if wanted {
			complain(u.Name, err)
			time.Sleep(restartDelay) //nolint:forbidigo // the first process of a machine ends with it
		}
	}
}

// obey carries out an order and returns when the program has stopped, or may start.
func (s *supervisor) obey(o order) error {
	for _, u := range s.order {
		switch u.Name {
		case o.Stop:
			u.stop()
			return nil
		case o.Start:
			u.changed.L.Lock()
			defer u.changed.L.Unlock()
			u.wanted = true
			u.changed.Broadcast()
			return nil
		}
	}
	return fmt.Errorf("no program is called %q", o.Stop+o.Start)
}

func (u *unit) stop() {
	u.changed.L.Lock()
	defer u.changed.L.Unlock()
	u.wanted = false
	if u.pid <= 0 {
		return
	}
	pid := u.pid
	_ = unix.Kill(pid, unix.SIGTERM) // it may have ended already
	kill := time.AfterFunc(stopTimeout, func() { _ = unix.Kill(pid, unix.SIGKILL) })
	defer kill.Stop()
	for u.pid != 0 {
		u.changed.Wait()
	}
}

// waitSocket returns when somebody accepts connections on a Unix socket.
func waitSocket(path string) {
	for path != "" {
		if c, err := net.Dial("unix", path); err == nil { //nolint:noctx // a local socket answers at once
			_ = c.Close() // it was opened only to see that it can be
			return
		}
		time.Sleep(socketPoll) //nolint:forbidigo // the first process of a machine ends with it
	}
}

// complain writes to the machine's console, which is the log of whoever booted it.
func complain(name string, err error) { fmt.Fprintf(os.Stderr, "%s: %v\n", name, err) }
