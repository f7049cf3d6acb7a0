package emulator

import (
	"errors"
	"net/http"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// ErrExists means that an interface of that id exists.
var ErrExists = errors.New("the network interface exists")

// PutInterface makes the network interface of a container instance (ECI): what a virtual node's pod has in a vSwitch. An
// empty vSwitch is the first one, an empty address the next free one.
func (e *Emulator) PutInterface(id string, spec cloud.ContainerSpec) (NetworkInterface, error) {
	var out NetworkInterface
	var err error
	e.store.Update(func() {
		if _, taken := e.store.Interfaces.Get(id); taken {
			err = ErrExists
			return
		}
		var eni *cloud.Interface
		if eni, err = e.store.AddContainer(id, spec); err == nil {
			out = e.copyInterface(eni, e.store.Now())
		}
	})
	e.fabric.Sync()
	return out, err
}

// ReleaseInterface removes the interface of a container instance and reports whether it was there. Interfaces of ECS
// instances go with their instance.
func (e *Emulator) ReleaseInterface(id string) bool {
	existed := false
	e.store.Update(func() { existed = e.store.RemoveContainer(id) })
	e.fabric.Sync()
	return existed
}

// putInterface answers in field names of DescribeNetworkInterfaces.
func (e *Emulator) putInterface(w http.ResponseWriter, r *http.Request) {
	var body struct{ InstanceId, VSwitchId, PrivateIpAddress string } //nolint:revive // names on the wire
	if err := decode(r, &body); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	eni, err := e.PutInterface(r.PathValue("id"), cloud.ContainerSpec{
		InstanceID: body.InstanceId, VSwitchID: body.VSwitchId, PrivateIP: body.PrivateIpAddress,
	})
	switch {
	case errors.Is(err, ErrExists), errors.Is(err, cloud.ErrAddressTaken), errors.Is(err, cloud.ErrNoAddress):
		refuse(w, http.StatusConflict, err)
	case err != nil:
		refuse(w, http.StatusBadRequest, err)
	default:
		reply(w, http.StatusOK, map[string]string{
			"NetworkInterfaceId": eni.ID, "InstanceId": eni.InstanceID, "VSwitchId": eni.VSwitchID,
			"PrivateIpAddress": eni.Addresses[0].String(),
		})
	}
}

func (e *Emulator) deleteInterface(w http.ResponseWriter, r *http.Request) {
	if !e.ReleaseInterface(r.PathValue("id")) {
		refuse(w, http.StatusNotFound, errors.New("network interface "+r.PathValue("id")+" does not exist or is an ECS instance's"))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
