package groups

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// member is a Service with what its annotations and its Record say.
type member struct {
	*corev1.Service

	params annotation.Params
	// fingerprint is that of the params.
	fingerprint string
	record      driver.Record
	// asks is the group that the Service asks for and may join, zero for none, or where it is another product's.
	asks mark.Group
}

// readMember reads a Service.
func (g *Groups[LB]) readMember(svc *corev1.Service) member {
	record, _ := driver.RecordOn(svc)
	params := g.ParamsOf(svc)
	return member{Service: svc, params: params, fingerprint: params.Fingerprint(), record: record, asks: g.askedGroup(svc)}
}

// memberOfAny reads a Service that may ask for a group. The annotations of one that asks for none are not parsed.
func (g *Groups[LB]) memberOfAny(svc *corev1.Service) member {
	if g.askedGroup(svc).IsZero() {
		return member{Service: svc}
	}
	return g.readMember(svc)
}

// askedGroup returns the group that a Service of the product asks for and may join, zero for none.
func (g *Groups[LB]) askedGroup(svc *corev1.Service) mark.Group {
	if !g.Product.AskedBy(g.Config, svc) {
		return mark.Group{}
	}
	group, _ := g.Asked(svc)
	return group
}

// isIn reports whether the Service asks for a group and may join it.
func (m *member) isIn(group mark.Group) bool { return !m.asks.IsZero() && m.asks.Is(group) }

// readings are the Services in the cache, each read once for each of its versions: the cache replaces a Service that changes. Each pass
// over a member of a group decides for all members several times, and looks for them among all Services. The zero value is empty.
type readings struct {
	mu    sync.Mutex // guards byUID
	byUID map[types.UID]*member
}

// membersIn returns the Services among those in the cache that ask for a group.
func (r *readings) membersIn(group mark.Group, all []*corev1.Service, read func(*corev1.Service) member) []member {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byUID == nil || len(r.byUID) > 2*len(all) { //nolint:mnd // most of them are gone
		r.byUID = make(map[types.UID]*member, len(all))
	}
	var found []member
	for _, svc := range all {
		known := r.byUID[svc.UID]
		if known == nil || known.Service != svc {
			now := read(svc)
			known = &now
			r.byUID[svc.UID] = known
		}
		if known.isIn(group) {
			found = append(found, *known)
		}
	}
	return found
}
