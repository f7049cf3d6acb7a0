package alicloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

// listenerPageSize is the page of DescribeLoadBalancerListeners that is known to be served.
const listenerPageSize = 50

// Listener protocols, as the API spells them.
const (
	ProtocolTCP   = "tcp"
	ProtocolUDP   = "udp"
	ProtocolHTTP  = "http"
	ProtocolHTTPS = "https"
)

// Listener states. A listener is created stopped; Starting, Stopping and Configuring are transitions during which writes
// are refused as busy.
const (
	ListenerStopped  = "stopped"
	ListenerStarting = "starting"
	ListenerRunning  = "running"
)

// unlimitedBandwidth leaves the bandwidth of a listener to the CLB; the API wants a value at creation.
const unlimitedBandwidth = "-1"

// ListenerKey identifies a listener on its CLB. TCP and UDP may share a port; TCP, HTTP and HTTPS may not.
type ListenerKey struct {
	Port     int
	Protocol string
}

// String returns for example "tcp:80".
func (k ListenerKey) String() string { return fmt.Sprintf("%s:%d", k.Protocol, k.Port) }

// Listener is one listener of a CLB.
type Listener struct {
	ListenerKey
	Status         string
	Description    string
	VServerGroupID string
	Attributes     Attributes
}

// DescribeListeners returns the listeners of up to ten CLBs by the id of the CLB. A listener without a readable port, which
// nobody could change or delete, is left out.
func (c *Client) DescribeListeners(ctx context.Context, loadBalancerIDs ...string) (map[string][]Listener, error) {
	in := params{}.setList("LoadBalancerId", loadBalancerIDs).setInt("MaxResults", listenerPageSize)
	all := map[string][]Listener{}
	for count, number := 0, 1; ; number++ {
		out := &describeListenersResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeLoadBalancerListeners", productSLB, in, out); err != nil {
			return nil, err
		}
		for _, wire := range out.Listeners {
			id := wireListener(wire).text("LoadBalancerId")
			if !slices.Contains(loadBalancerIDs, id) {
				return nil, out.unusable("DescribeLoadBalancerListeners", "asked for the listeners of %q, got one of %q", loadBalancerIDs, id)
			}
			listener, err := wireListener(wire).listener()
			if err != nil {
				// No listener of ours lacks its port. Failing here would stop all Services whose CLBs were asked for with this one.
				klog.FromContext(ctx).Info("Ignoring a listener that cannot be identified", "lb", id, "reason", err.Error())
				continue
			}
			all[id] = append(all[id], listener)
		}
		count += len(out.Listeners)
		if more, err := in.nextPage(out.answer, "DescribeLoadBalancerListeners", out.NextToken, number); err != nil {
			return nil, err
		} else if more {
			continue
		}
		if count < out.TotalCount {
			return nil, out.unusable("DescribeLoadBalancerListeners", "the pages have %d items and TotalCount is %d", count, out.TotalCount)
		}
		return all, nil
	}
}

type describeListenersResponse struct {
	answer
	NextToken  string
	TotalCount int
	Listeners  []map[string]any
}

// wireListener is one element of the answer: common fields, and one object with those of the listener's protocol.
type wireListener map[string]any

func (w wireListener) text(name string) string { return attributeText(w[name]) }

func (w wireListener) texts(name string) []string {
	items, _ := w[name].([]any)
	var texts []string
	for _, item := range items {
		if text := attributeText(item); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

func (w wireListener) listener() (Listener, error) {
	port, err := strconv.Atoi(w.text("ListenerPort"))
	if err != nil {
		return Listener{}, fmt.Errorf("listener port %q is not a number", w.text("ListenerPort"))
	}
	protocol := strings.ToLower(w.text("ListenerProtocol"))
	listener := Listener{
		ListenerKey: ListenerKey{Port: port, Protocol: protocol},
		Status:      w.text("Status"), Description: w.text("Description"), VServerGroupID: w.text("VServerGroupId"),
		Attributes: Attributes{},
	}
	for _, name := range []string{AttributeScheduler, AttributeBandwidth, AttributeACLStatus, AttributeACLType, AttributeACLIDs} {
		if value := w.text(name); value != "" {
			listener.Attributes[name] = value
		}
	}
	if ids := w.texts("AclIds"); len(ids) > 0 { // AclId then has one of them at most
		listener.Attributes[AttributeACLIDs] = strings.Join(slices.Sorted(slices.Values(ids)), ",")
	}
	config, _ := w[strings.ToUpper(protocol)+"ListenerConfig"].(map[string]any)
	for name, raw := range config {
		if value := attributeText(raw); value != "" {
			listener.Attributes[name] = value
		}
	}
	return listener, nil
}

// attributeText writes a scalar of the answer as the API takes it in a request; lists and objects have no such form.
func attributeText(raw any) string {
	switch value := raw.(type) {
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	default:
		return ""
	}
}

// CreateListener makes a listener, which starts out [ListenerStopped]. The action takes no client token: after an
// ambiguous error the listener may exist.
func (c *Client) CreateListener(ctx context.Context, loadBalancerID string, listener Listener) error {
	in := listenerParams(loadBalancerID, listener)
	if in[AttributeBandwidth] == "" {
		in[AttributeBandwidth] = unlimitedBandwidth
	}
	// Only the two create actions of layer 4 spell the interval with a lower-case letter.
	if interval, ok := in[AttributeHealthCheckInterval]; ok && isLayer4(listener.Protocol) {
		delete(in, AttributeHealthCheckInterval)
		in["healthCheckInterval"] = interval
	}
	return c.slbWrite(ctx, "CreateLoadBalancer"+strings.ToUpper(listener.Protocol)+"Listener", in)
}

// SetListener changes the group, the description and the given attributes of a listener.
func (c *Client) SetListener(ctx context.Context, loadBalancerID string, listener Listener) error {
	in := listenerParams(loadBalancerID, listener)
	if listener.VServerGroupID != "" {
		in["VServerGroup"] = "on" // without it VServerGroupId is ignored
	}
	return c.slbWrite(ctx, "SetLoadBalancer"+strings.ToUpper(listener.Protocol)+"ListenerAttribute", in)
}

// StartListener starts a stopped listener. One that runs or starts already is a success: the cloud refuses it with the code
// that it also has for a listener in transition, and the state tells them apart.
func (c *Client) StartListener(ctx context.Context, loadBalancerID string, key ListenerKey) error {
	err := c.slbWrite(ctx, "StartLoadBalancerListener", keyParams(loadBalancerID, key).set("ListenerProtocol", key.Protocol))
	if !HasCode(err, codeListenerStatus) {
		return err
	}
	found, readErr := c.DescribeListeners(ctx, loadBalancerID)
	started := slices.ContainsFunc(found[loadBalancerID], func(l Listener) bool {
		return l.ListenerKey == key && (l.Status == ListenerRunning || l.Status == ListenerStarting)
	})
	if readErr == nil && started {
		return nil
	}
	return err
}

// DeleteListener removes a listener; its vServer group stays.
func (c *Client) DeleteListener(ctx context.Context, loadBalancerID string, key ListenerKey) error {
	return c.slbWrite(ctx, "DeleteLoadBalancerListener", keyParams(loadBalancerID, key).set("ListenerProtocol", key.Protocol))
}

func listenerParams(loadBalancerID string, listener Listener) params {
	in := keyParams(loadBalancerID, listener.ListenerKey)
	maps.Copy(in, listener.Attributes)
	return in.set("VServerGroupId", listener.VServerGroupID).set("Description", listener.Description)
}

func keyParams(loadBalancerID string, key ListenerKey) params {
	return params{"LoadBalancerId": loadBalancerID}.setInt("ListenerPort", key.Port)
}

func isLayer4(protocol string) bool { return protocol == ProtocolTCP || protocol == ProtocolUDP }
