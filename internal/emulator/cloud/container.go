package cloud

import "fmt"

// ContainerSpec describes the network interface of a container instance (ECI). Empty fields get defaults.
type ContainerSpec struct {
	// InstanceID is the container instance's, for example eci-2ze…; a fresh one when empty.
	InstanceID           string
	VSwitchID, PrivateIP string
}

// AddContainer creates the network interface of a container instance, which is all that the other products see of one: it
// is no ECS instance, and its interface may be a backend server of a load balancer. The caller holds the lock.
func (s *Store) AddContainer(id string, spec ContainerSpec) (*Interface, error) {
	vsw, err := s.placeOf(InstanceSpec{VSwitchID: spec.VSwitchID, PrivateIP: spec.PrivateIP})
	if err != nil {
		return nil, err
	}
	object := s.NewObject("eni")
	if id != "" {
		object.ID = id
	}
	if spec.InstanceID == "" {
		spec.InstanceID = NewID("eci")
	}
	ip, err := s.TakeAddress(vsw, spec.PrivateIP)
	if err != nil {
		return nil, fmt.Errorf("place network interface %s: %w", object.ID, err)
	}
	eni := &Interface{
		Object: object, Type: "Secondary", InstanceID: spec.InstanceID, ZoneID: vsw.ZoneID, VPCID: vsw.VPCID, VSwitchID: vsw.ID,
		MAC: mac(object.Seq), PrimaryIP: ip, PrivateIPs: []string{ip}, SecurityGroups: []string{"sg-emulator"}, SourceDestCheck: true,
	}
	s.addInterface(eni)
	return eni, nil
}

// IsContainer reports whether an id is that of a container instance. One runs as long as it has its interface.
func (s *Store) IsContainer(instanceID string) bool {
	_, isECS := s.Instances.Get(instanceID)
	return !isECS && len(s.InterfacesOf(instanceID)) > 0
}

// RemoveContainer removes the interface of a container instance and reports whether it was there.
func (s *Store) RemoveContainer(id string) bool {
	eni, ok := s.Interfaces.Get(id)
	if !ok || !s.IsContainer(eni.InstanceID) {
		return false
	}
	s.removeInterface(eni)
	return true
}
