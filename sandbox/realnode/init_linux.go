package realnode

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ProgramName is the program that is the first process, kubelet, kube-proxy and Flannel of a machine. InitCommand or the name of
// another one is its first argument.
const (
	ProgramName = "machine"
	InitCommand = "init"
)

// Init is the first process of a machine. It must be that of fresh mount and process namespaces, as Boot starts it. It returns when its
// standard input ends, which is when the power is cut.
func Init() error {
	in := bufio.NewReader(os.Stdin)
	var spec bootSpec
	if err := readLine(in, &spec); err != nil {
		return fmt.Errorf("read what to boot: %w", err)
	}
	s := newSupervisor(spec.Programs, logDir, doneDir)
	err := errors.Join(mountDisk(spec.Disk), setHostname(spec.Hostname))
	if err == nil {
		s.boot()
	}
	out := json.NewEncoder(os.Stdout)
	for {
		var reply answer
		if err != nil {
			reply.Error = err.Error()
		}
		if err = out.Encode(reply); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		var o order
		if err = readLine(in, &o); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.obey(o)
		}
	}
}

func readLine(in *bufio.Reader, value any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, value)
}

func setHostname(name string) error {
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set the host name %q: %w", name, err)
	}
	return nil
}
