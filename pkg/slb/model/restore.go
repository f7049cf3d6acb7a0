package model

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// createdToo are attributes that no annotation sets and that an observed listener is created with again.
var createdToo = map[string][]string{
	alicloud.ProtocolHTTP:  {alicloud.AttributeListenerForward, alicloud.AttributeForwardPort, alicloud.AttributeGzip},
	alicloud.ProtocolHTTPS: {alicloud.AttributeGzip, alicloud.AttributeCACertificateID},
}

// Restored returns an observed listener as the call takes it that creates it again. Answers have attributes that this call does not
// take.
func (l *Listener) Restored() alicloud.Listener {
	names := slices.Concat(createdToo[l.Protocol], []string{alicloud.AttributeBandwidth})
	for _, row := range annotation.ListenerTable() {
		if row.Attribute != "" && slices.Contains(row.Protocols, l.Protocol) {
			names = append(names, row.Attribute)
		}
	}
	attributes := alicloud.Attributes{}
	for _, name := range names {
		if value := l.Attributes[name]; value != "" {
			attributes[name] = value
		}
	}
	return alicloud.Listener{ListenerKey: l.ListenerKey, Description: l.Description, VServerGroupID: l.GroupID, Attributes: attributes}
}
