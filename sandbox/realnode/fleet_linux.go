package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Instance is a machine that somebody else says exists.
type Instance struct {
	ID string
	// Name is the name of the node.
	Name    string
	Address string
	Running bool
	// OnPremises says that it is no instance of the cloud.
	OnPremises bool
}

// FleetOptions configures NewFleet. All are required but Log and Images.
type FleetOptions struct {
	Program string
	Tools   Tools
	// Dir takes the disks, Cgroup ("/name") the cgroups of all machines.
	Dir, Cgroup string
	// Images are archives that each machine has from its first boot on, Registry is the URL of where it pulls others from.
	Images   []string
	Registry string
	// Log takes what goes wrong.
	Log io.Writer
	// Instances lists the machines. Changed returns a channel that signals the next change of that list; it is asked before the list is
	// read, so that no change is missed.
	Instances func() []Instance
	Changed   func() <-chan struct{}
	// Attach makes the network of a machine, Detach ends it.
	Attach func(context.Context, Instance) (Namespace, error)
	Detach func(id string) error
	// Node is what a machine is to the cluster.
	Node func(Instance) (Node, error)
}

// Fleet boots and ends machines as a list of instances says.
type Fleet struct {
	FleetOptions

	mu sync.Mutex
	on map[string]*powered // by instance ID; guarded by mu
}

// powered is an instance under power.
type powered struct {
	Instance
	machine *Machine
	network Namespace
}

// NewFleet prepares a fleet; Run runs it.
func NewFleet(opts FleetOptions) *Fleet {
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	return &Fleet{FleetOptions: opts, on: map[string]*powered{}}
}

// Run follows the instances until ctx ends, then cuts the power of all machines and removes their disks.
func (f *Fleet) Run(ctx context.Context) error {
	disks := map[string]bool{}
	for ctx.Err() == nil {
		changed := f.Changed()
		f.follow(ctx, f.Instances(), disks)
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	f.follow(context.WithoutCancel(ctx), nil, disks)
	return removeCgroup(f.Cgroup)
}

// follow compares the instances with the machines that are on, and switches what differs. A released instance loses its disk, too.
func (f *Fleet) follow(ctx context.Context, instances []Instance, disks map[string]bool) {
	exist, run := map[string]bool{}, map[string]Instance{}
	for _, instance := range instances {
		exist[instance.ID] = true
		if instance.Running {
			run[instance.ID] = instance
			disks[instance.ID] = true
		}
	}
	var group errgroup.Group
	for _, was := range f.poweredOn() {
		// A machine whose name or address changed is a machine that was set up anew.
		if now, ok := run[was.ID]; !ok || now != was.Instance {
			group.Go(func() error { return f.switchOff(was) })
		}
	}
	f.complain(group.Wait())
	group = errgroup.Group{}
	for _, instance := range run {
		if f.Machine(instance.ID) == nil {
			group.Go(func() error { return f.switchOn(ctx, instance) })
		}
	}
	f.complain(group.Wait())
	for id := range disks {
		if !exist[id] {
			f.complain(os.RemoveAll(f.disk(id)))
			delete(disks, id)
		}
	}
}

func (f *Fleet) disk(id string) string { return filepath.Join(f.Dir, id) }

func (f *Fleet) switchOn(ctx context.Context, instance Instance) error {
	node, err := f.Node(instance)
	if err != nil {
		return err
	}
	network, err := f.Attach(ctx, instance)
	if err != nil {
		return err
	}
	machine, err := Boot(Options{
		Program: f.Program, Tools: f.Tools, Dir: f.disk(instance.ID), Cgroup: f.Cgroup + "/" + instance.ID, Network: network,
		Console: f.Log, Node: node, Images: f.Images, Registry: f.Registry,
	})
	if err != nil {
		return errors.Join(err, f.Detach(instance.ID))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on[instance.ID] = &powered{Instance: instance, machine: machine, network: network}
	return nil
}

// switchOff cuts power and network. The Node stays as it is, as a dead kubelet cannot change it.
func (f *Fleet) switchOff(p *powered) error {
	f.mu.Lock()
	delete(f.on, p.ID)
	f.mu.Unlock()
	return errors.Join(p.machine.PowerOff(), f.Detach(p.ID))
}

func (f *Fleet) poweredOn() []*powered {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*powered, 0, len(f.on))
	for _, p := range f.on {
		list = append(list, p)
	}
	return list
}

// Machine is the machine of an instance, nil while that has no power.
func (f *Fleet) Machine(id string) *Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.on[id]; p != nil {
		return p.machine
	}
	return nil
}

// Network is the network of an instance, nil while that has no power.
func (f *Fleet) Network(id string) Namespace {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.on[id]; p != nil {
		return p.network
	}
	return nil
}

// complain logs what went wrong. The next change of the instances is the next try.
func (f *Fleet) complain(err error) {
	if err != nil {
		_, _ = fmt.Fprintf(f.Log, "%s%v\n", Complaint, err) // a log that is gone helps nobody
	}
}
