package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/lightnode"
)

// running is the status of an instance that has power.
const running = "Running"

// requestTimeout bounds one HTTP request inside the VPC; answers come from memory.
const requestTimeout = 5 * time.Second

// vSwitches of the built-in configuration, which the first nodes are spread over, so that there is more than one zone.
var vSwitches = []string{"vsw-a", "vsw-b"}

// Machine is an instance with what the cluster should come to know of it.
type Machine struct {
	ID           string
	NodeName     string
	PrivateIP    string
	RegionID     string
	ZoneID       string
	InstanceType string
	Running      bool
}

// AddNode puts the i-th of the first instances into the cloud. As in the cloud, no ID is a part of another one: some programs search for a
// part.
func (c *Cloud) AddNode(i int) error {
	id := fmt.Sprintf("i-sandbox%04d", i+1)
	_, err := c.PutInstance(id, emulator.InstanceSpec{
		Name: fmt.Sprintf("node-%d", i+1), VSwitchID: vSwitches[i%len(vSwitches)],
		// As on ECS: until it is switched off, a machine gets no packets for the pods behind it.
		SourceDestCheck: true,
	})
	if err != nil {
		return fmt.Errorf("put instance %s into the cloud: %w", id, err)
	}
	return nil
}

// Machines lists the instances, sorted by node name.
func (c *Cloud) Machines() []Machine {
	var machines []Machine
	for _, instance := range c.Emulator.Instances() {
		machines = append(machines, Machine{
			ID: instance.ID, NodeName: lightnode.NodeName(lightInstance(instance)), PrivateIP: instance.PrivateIP,
			RegionID: instance.RegionID, ZoneID: instance.ZoneID, InstanceType: instance.InstanceType,
			Running: instance.Status == running,
		})
	}
	slices.SortFunc(machines, func(a, b Machine) int { return strings.Compare(a.NodeName, b.NodeName) })
	return machines
}

// lightInstances lists the instances for the kubelets.
func (c *Cloud) lightInstances() []lightnode.Instance {
	var instances []lightnode.Instance
	for _, instance := range c.Emulator.Instances() {
		instances = append(instances, lightInstance(instance))
	}
	return instances
}

func lightInstance(instance emulator.Instance) lightnode.Instance {
	return lightnode.Instance{
		ID: instance.ID, Name: instance.Name, PrivateIP: instance.PrivateIP, Running: instance.Status == running,
	}
}

// Get sends an HTTP request from a machine to addr ("ip:port") through the VPC and returns the body, without the white space around it.
// Each request has a connection of its own.
func (c *Cloud) Get(ctx context.Context, fromInstance, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return c.nodes.dial(ctx, fromInstance, network, addr)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return "", fmt.Errorf("ask %s from %s: %w", addr, fromInstance, err)
	}
	response, err := client.Do(request)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the rest repeats what is said here
	}
	if err != nil {
		return "", fmt.Errorf("ask %s from %s: %w", addr, fromInstance, err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", addr, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", addr, response.Status)
	}
	return strings.TrimSpace(string(body)), nil
}
