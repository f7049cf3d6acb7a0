package fabric

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// proxySettings say whether a listener names the client in a PROXY header of version 2, and what else the header has.
type proxySettings struct {
	on bool
	// vpcID adds the VPC to the header of a client inside it. Endpoints of PrivateLink, which a header can name too, do not exist here.
	vpcID bool
}

func proxySettingsOf(l *cloud.NLBListener) proxySettings {
	var more struct{ Ppv2VpcIdEnabled bool } //nolint:revive // name on the wire
	if l.ProxyProtocolV2 != "" {
		// Writes have checked that it is JSON; a value of another type is as good as none.
		_ = json.Unmarshal([]byte(l.ProxyProtocolV2), &more)
	}
	return proxySettings{on: l.ProxyProtocol, vpcID: more.Ppv2VpcIdEnabled}
}

// The vendor's own fields of a PROXY header.
// Source: https://help.aliyun.com/zh/privatelink/obtain-real-client-information
const (
	vendorTLV  = proxyproto.PP2Type(0xE1)
	vpcSubtype = 0x01
)

// proxyHeader is the PROXY protocol header, version 2, that names the client to a backend server.
func proxyHeader(s settings, a arrival) ([]byte, error) {
	vip, err := netip.ParseAddr(s.inner(a.vip).Address)
	if err != nil {
		return nil, fmt.Errorf("PROXY header of %s: %w", s.key.LoadBalancerID, err)
	}
	destination := netip.AddrPortFrom(vip, uint16(a.port)) //nolint:gosec // the API admits 1-65535
	var from, to net.Addr = net.TCPAddrFromAddrPort(a.source), net.TCPAddrFromAddrPort(destination)
	if s.key.Protocol == udp {
		from, to = net.UDPAddrFromAddrPort(a.source), net.UDPAddrFromAddrPort(destination)
	}
	header := proxyproto.HeaderProxyFromAddrs(2, from, to)
	if s.proxy.vpcID && !a.vip.Internet {
		err = header.SetTLVs([]proxyproto.TLV{{Type: vendorTLV, Value: append([]byte{vpcSubtype}, s.vpcID...)}})
	}
	if err != nil {
		return nil, fmt.Errorf("PROXY header of %s: %w", s.key.LoadBalancerID, err)
	}
	return header.Format()
}

// introduce writes the PROXY header where the listener wants one, within the time of ctx.
func introduce(ctx context.Context, c net.Conn, s settings, a arrival) error {
	if !s.proxy.on {
		return nil
	}
	header, err := proxyHeader(s, a)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Write(header); err != nil {
		return fmt.Errorf("send the PROXY header: %w", err)
	}
	return nil
}
