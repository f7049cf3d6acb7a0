//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namespaces is where named namespaces are mounted; `ip netns` knows it too.
const namespaces = "/run/netns"

// Namespace is a network namespace with a name.
type Namespace struct {
	// Name is the file name in /run/netns.
	Name string
	// Path is what `nsenter --net=` takes. Use nsenter and not `ip netns exec`: that mounts a /sys of its own, without cgroups.
	Path string

	handle netns.NsHandle
}

// makeNamespace makes a namespace; one of the same name is an error.
func makeNamespace(name string) (*Namespace, error) {
	s := &Namespace{Name: name, Path: filepath.Join(namespaces, name)}
	made := make(chan error, 1)
	go func() {
		// The thread is in the new namespace and must serve nobody else: it ends with the goroutine, because it stays locked.
		runtime.LockOSThread()
		var err error
		s.handle, err = netns.NewNamed(name)
		made <- err
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("make the network namespace %s: %w", name, err)
	}
	return s, nil
}

// OpenNamespace opens the namespace of an endpoint that another process has attached; Path says where it is. Close closes it.
func OpenNamespace(path string) (*Namespace, error) {
	handle, err := netns.GetFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("open the network namespace %s: %w", path, err)
	}
	return &Namespace{Name: filepath.Base(path), Path: path, handle: handle}, nil
}

// Close lets go of a namespace that OpenNamespace has opened.
func (s *Namespace) Close() error { return s.handle.Close() }

// remove takes the name away. The namespace goes with its last process and socket.
func (s *Namespace) remove() error {
	return errors.Join(s.handle.Close(), removeName(s.Name))
}

func removeName(name string) error {
	path := filepath.Join(namespaces, name)
	// A process that was killed between making the file and mounting on it leaves a plain file.
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount the network namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the network namespace %s: %w", name, err)
	}
	return nil
}

// RemoveLeftovers removes the namespaces that a killed process left under a prefix. A veth pair goes with the first of its ends.
func RemoveLeftovers(prefix string) error {
	names, err := filepath.Glob(filepath.Join(namespaces, prefix+"-*"))
	if err != nil {
		return fmt.Errorf("find namespaces of %s: %w", prefix, err)
	}
	var errs []error
	for _, path := range names {
		errs = append(errs, removeName(filepath.Base(path)))
	}
	return errors.Join(errs...)
}

// Do runs f on a thread in the namespace. Sockets that f makes belong to the namespace for ever; goroutines that it starts do not run
// there, so f should look up no names.
func (s *Namespace) Do(f func()) error {
	done := make(chan error, 1)
	go func() {
		// Closed also when f ends its goroutine, as a failing test does.
		defer close(done)
		// Never unlocked: the thread ends with the goroutine instead of serving others from this namespace.
		runtime.LockOSThread()
		if err := netns.Set(s.handle); err != nil {
			done <- fmt.Errorf("enter the network namespace %s: %w", s.Name, err)
			return
		}
		f()
	}()
	return <-done
}

// Dial connects from the namespace to "ip:port".
func (s *Namespace) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dial(ctx, &net.Dialer{}, network, addr)
}

func (s *Namespace) dial(ctx context.Context, d *net.Dialer, network, addr string) (c net.Conn, err error) {
	if host, _, splitErr := net.SplitHostPort(addr); splitErr != nil || net.ParseIP(host) == nil {
		return nil, fmt.Errorf("dial %q from %s: want ip:port", addr, s.Name)
	}
	entered := s.Do(func() { c, err = d.DialContext(ctx, network, addr) })
	return c, errors.Join(entered, err)
}

// Listen opens a TCP listener in the namespace. The caller closes it. The address need not be one of the namespace's yet.
func (s *Namespace) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return s.listen(ctx, &net.ListenConfig{Control: control(transparent)}, addr)
}

func (s *Namespace) listen(ctx context.Context, c *net.ListenConfig, addr string) (l net.Listener, err error) {
	// A listener of MPTCP takes plain TCP too, but not all socket options.
	c.SetMultipathTCP(false)
	entered := s.Do(func() { l, err = c.Listen(ctx, "tcp4", addr) })
	return l, errors.Join(entered, err)
}

// ListenPacket opens a UDP socket in the namespace. The caller closes it.
func (s *Namespace) ListenPacket(ctx context.Context, addr string) (p net.PacketConn, err error) {
	c := net.ListenConfig{Control: control(transparent)}
	entered := s.Do(func() { p, err = c.ListenPacket(ctx, "udp4", addr) })
	return p, errors.Join(entered, err)
}

// option sets something on a socket before it is bound.
type option func(fd int) error

// transparent lets a socket have an address that is not one of the namespace's: a VIP, or that of a client.
func transparent(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1) }

// reusable lets a socket have the client's port although an earlier connection with it is not quite over.
func reusable(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }

// boundTo lets a socket see only what comes in through one link.
func boundTo(link string) option {
	return func(fd int) error { return unix.BindToDevice(fd, link) }
}

func control(options ...option) func(string, string, syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var errs []error
		err := raw.Control(func(fd uintptr) {
			for _, o := range options {
				errs = append(errs, os.NewSyscallError("setsockopt", o(int(fd))))
			}
		})
		return errors.Join(append(errs, err)...)
	}
}

// sysctl sets a value of the namespace's network, by its path below /proc/sys/net.
func (s *Namespace) sysctl(values map[string]string) error {
	var errs []error
	entered := s.Do(func() {
		for path, value := range values {
			err := os.WriteFile(filepath.Join("/proc/sys/net", path), []byte(value), 0)
			if os.IsNotExist(err) && strings.HasPrefix(path, "ipv6/") {
				continue // a kernel without IPv6 has nothing to switch off
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("namespace %s: %w", s.Name, err))
			}
		}
	})
	return errors.Join(append(errs, entered)...)
}
