package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
)

// leaseHeartbeats is how many heartbeats a kubelet's Lease lasts: the kubelet decides the one by the other.
const leaseHeartbeats = 4

// machines are real machines, without their network.
type machines struct {
	opts  Options
	files *files
	tools realnode.Tools
	// program is the one that machines run.
	program string
	// name is one that no other sandbox of this host has, and that this one has again after a restart.
	name string
	// archives are the images that every machine has.
	archives []string
	fleet    *realnode.Fleet
	// record lets others distinguish this sandbox from dead ones.
	record *fileutil.LockedFile
}

// NameOf is the name that namespaces and cgroups of a sandbox in a directory, given as an absolute path, begin with.
func NameOf(dir string) string {
	digest := sha256.Sum256([]byte(dir))
	return "sb" + hex.EncodeToString(digest[:])[:6]
}

func newMachines(opts Options, files *files) (*machines, error) {
	tools, err := realnode.FindTools()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	binDir := cmp.Or(opts.BinDir, filepath.Dir(self))
	m := &machines{opts: opts, files: files, tools: tools, program: filepath.Join(binDir, realnode.ProgramName), name: NameOf(files.dir)}
	if m.program, err = filepath.Abs(m.program); err != nil {
		return nil, fmt.Errorf("find the program of machines: %w", err)
	}
	if _, err = os.Stat(m.program); err != nil {
		return nil, fmt.Errorf("the program of real machines is missing (make machine builds it): %w", err)
	}
	if _, err = Clean(); err != nil {
		fmt.Fprintf(files.log, "%s%v\n", realnode.Complaint, err) // what others have left does not keep this one from running
	}
	if err = realnode.CheckHost(opts.Nodes+opts.OnPremises, "/"+m.name, files.state); err != nil {
		return nil, err
	}
	archive := files.statePath("images.tar")
	m.archives = append([]string{archive}, opts.Images...)
	if err = writeImages(archive, binDir, opts.Published); err != nil {
		return nil, err
	}
	m.record, err = takeRecord(m.name, files.dir)
	return m, err
}

// end makes the sandbox unknown: nothing is left of it.
func (m *machines) end() error { return removeRecord(m.record) }

// node is what an instance is to the cluster, with the identities that a bootstrap would have given it.
func (m *machines) node(c *Cluster, instance realnode.Instance, heartbeat time.Duration) (realnode.Node, error) {
	address, err := netip.ParseAddr(instance.Address)
	if err != nil {
		return realnode.Node{}, fmt.Errorf("address of instance %s: %w", instance.ID, err)
	}
	node := realnode.Node{
		Name: instance.Name, Address: address, ClusterCIDR: c.podCIDR, ClusterDNS: m.opts.ClusterDNS,
		CA: c.plane.CA(), LeaseDuration: leaseHeartbeats * heartbeat,
	}
	if node.Kubeconfig, err = c.plane.MachineKubeconfig("system:node:"+instance.Name, "system:nodes"); err != nil {
		return realnode.Node{}, err
	}
	node.ProxyKubeconfig, err = c.plane.MachineKubeconfig("system:kube-proxy")
	return node, err
}

// servePrograms takes orders to the programs of a machine.
func (m *machines) servePrograms(mux *http.ServeMux) {
	for verb, do := range map[string]func(*realnode.Machine, string) error{
		"stop": (*realnode.Machine).StopProgram, "start": (*realnode.Machine).StartProgram,
	} {
		mux.HandleFunc("POST /_sandbox/machines/{instance}/"+verb+"/{program}", func(w http.ResponseWriter, r *http.Request) {
			machine := m.fleet.Machine(r.PathValue("instance"))
			if machine == nil {
				http.Error(w, fmt.Sprintf("instance %q does not run", r.PathValue("instance")), http.StatusNotFound)
				return
			}
			if err := do(machine, r.PathValue("program")); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
	}
}
