package cloud

import "time"

// EIP is an elastic IP address.
type EIP struct {
	Object
	Name, Description, Address          string
	Bandwidth                           int
	InternetChargeType, ChargeType      string
	ResourceGroupID                     string
	InstanceID, InstanceType, PrivateIP string
	Phase                               Phase
	Tags                                Tags
}

// Statuses of an EIP. Available is shared with route entries.
const (
	InUse         = "InUse"
	Associating   = "Associating"
	Unassociating = "Unassociating"
	Releasing     = "Releasing"
)

// Holder returns the instance that an address is bound to at a moment; while it is being unbound there is none.
func (e *EIP) Holder(t time.Time) string {
	if s := e.Phase.At(t); s == InUse || s == Associating {
		return e.InstanceID
	}
	return ""
}

// EIPOf returns the address that is bound to an instance.
func (s *Store) EIPOf(instanceID string, now time.Time) (*EIP, bool) {
	for e := range s.EIPs.All() {
		if e.Holder(now) == instanceID {
			return e, true
		}
	}
	return nil, false
}
