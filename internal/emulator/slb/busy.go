package slb

import (
	"net/http"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// statusSystemBusy is a status that net/http does not know and the cloud really sends.
const statusSystemBusy = 449

// The cloud has several codes for "not now". They take turns, so that a client that knows only one of them is found out.
var (
	groupBusy = []*api.Error{
		api.Errorf(http.StatusConflict, "BackendServer.configuring", "The backend servers of the group are being configured."),
		api.BadRequest("VServerGroupProcessing", "The vServer group is being processed."),
		api.BadRequest("OperationBusy", "Another operation on the load balancer is in progress."),
		api.Errorf(statusSystemBusy, "SystemBusy", "The system is busy, try again later."),
	}
	listenerBusy = []*api.Error{
		api.BadRequest("ServiceIsConfiguring", "The listener is being configured."),
		api.BadRequest("OperationBusy", "Another operation on the load balancer is in progress."),
		api.Errorf(statusSystemBusy, "SystemBusy", "The system is busy, try again later."),
		api.BadRequest("VpcSystemBusy", "The network is busy, try again later."),
	}
)

// inTurn picks the code of the n-th refusal, counted from 1.
func inTurn(family []*api.Error, n int) *api.Error { return family[(n-1)%len(family)] }
