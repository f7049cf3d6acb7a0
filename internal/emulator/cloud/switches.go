package cloud

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// Switches are behaviors of the cloud that no document settles, or that come and go. The zero value is what documents and clients in
// production suggest. A client must work with each of them either way.
type Switches struct {
	// SpecSalesEnded refuses new load balancers that are paid by specification, which the vendor stopped selling.
	SpecSalesEnded bool `json:"specSalesEnded,omitempty"`
	// UsageByTrafficOnly refuses paybybandwidth for load balancers that are paid by use, as the API's pages say. That the cloud does
	// so, and with which code, is not confirmed.
	UsageByTrafficOnly bool `json:"usageByTrafficOnly,omitempty"`
	// RouteListsIPv4 makes lists of route entries that ask for no IP version leave IPv6 ones out. No document says whether
	// the cloud does.
	RouteListsIPv4 bool `json:"routeListsIPv4,omitempty"`
	// RouteBatchesWhole refuses a whole batch of route entries when the next hop of one of them is not accepted. Whether the cloud
	// does so, or lets that entry alone fail, is not confirmed.
	RouteBatchesWhole bool `json:"routeBatchesWhole,omitempty"`
	// SeveralACLs is what the answer's AclId holds when a listener has several access control lists; AclIds holds all of them
	// in any case.
	SeveralACLs SeveralACLs `json:"severalAcls,omitempty"`
	// OtherVPCCode is the code for a backend server in another VPC than its load balancer's; "" is NetworkConflict.
	OtherVPCCode string `json:"otherVpcCode,omitempty"`
	// AttachedQuotaCode is the code for an instance that is a backend server of as many load balancers as it may be; "" is
	// QuotaExceeded.AttachedLoadBalancers.
	AttachedQuotaCode string `json:"attachedQuotaCode,omitempty"`
	// TagSearchLag makes CLB's searches by tag see tags as they were this long ago.
	TagSearchLag Duration `json:"tagSearchLag,omitzero"`
	// ReplicaLag makes CLB's reads miss whatever was created less than this time ago, also by id.
	ReplicaLag Duration `json:"replicaLag,omitzero"`
	// NLBReadsFailAtFirst makes a read of an NLB by id fail with OperationFailed.GetXipFailed during the first half of its creation.
	NLBReadsFailAtFirst bool `json:"nlbReadsFailAtFirst,omitempty"`
	// NLBGroupsRefuseTCPSSL refuses server groups whose protocol is TCPSSL, as the API's page says; clients in production create them.
	NLBGroupsRefuseTCPSSL bool `json:"nlbGroupsRefuseTCPSSL,omitempty"`
	// NLBTCPSSLRefusesUDPChecks refuses health checks by UDP of server groups whose protocol is TCPSSL. No document says whether they may have
	// them.
	NLBTCPSSLRefusesUDPChecks bool `json:"nlbTCPSSLRefusesUDPChecks,omitempty"`
	// NLBUDPServersAnswerTCP lets backend servers of UDP server groups pass health checks by TCP and HTTP on the port that they serve, as a
	// program does that listens to both.
	NLBUDPServersAnswerTCP bool `json:"nlbUDPServersAnswerTCP,omitempty"`
	// NLBGroupTagsAny makes a search for server groups by several tags find those with one of them, as for load balancers.
	NLBGroupTagsAny bool `json:"nlbGroupTagsAny,omitempty"`
	// NLBRangesOverTLS lets a TCPSSL listener have a range of ports. No document says whether it may.
	NLBRangesOverTLS bool `json:"nlbRangesOverTLS,omitempty"`
	// Flipped are the ids of facts that do not hold; see package facts.
	Flipped []string `json:"flipped,omitempty"`
}

// SeveralACLs says where an answer names several access control lists.
type SeveralACLs string

// Values of SeveralACLs: AclId is empty, holds the first id, or all of them with commas between.
const (
	ACLIDEmpty  SeveralACLs = ""
	ACLIDFirst  SeveralACLs = "first"
	ACLIDJoined SeveralACLs = "joined"
)

// Check reports a switch whose value is not known.
func (s Switches) Check() error {
	switch {
	case s.SeveralACLs != ACLIDEmpty && s.SeveralACLs != ACLIDFirst && s.SeveralACLs != ACLIDJoined:
		return fmt.Errorf("severalAcls %q: known are %s and %s", s.SeveralACLs, ACLIDFirst, ACLIDJoined)
	case s.TagSearchLag < 0 || s.ReplicaLag < 0:
		return fmt.Errorf("tagSearchLag %s, replicaLag %s: cannot be negative", time.Duration(s.TagSearchLag), time.Duration(s.ReplicaLag))
	}
	if err := facts.Known(s.Flipped); err != nil {
		return fmt.Errorf("flipped: %w", err)
	}
	return nil
}

// Duration is a time.Duration that travels as text, such as 30s.
type Duration time.Duration

// MarshalJSON writes the text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads the text. Its errors get the name of the field from the decoder.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	err := json.Unmarshal(data, &text)
	var parsed time.Duration
	if err == nil {
		parsed, err = time.ParseDuration(text)
	}
	if err != nil {
		return &json.UnmarshalTypeError{Value: string(data), Type: reflect.TypeFor[Duration]()}
	}
	*d = Duration(parsed)
	return nil
}
