package groups

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

// ErrNotInGroup says that no load balancer of a group has anything of a Service.
var ErrNotInGroup = errors.New("no load balancer of the group has anything of the Service")

// Contents says what there is on a load balancer of a group: something of the Service, and listeners of others.
type Contents struct{ Has, Others bool }

// Emptied is what was found of a load balancer that is to be removed: with an error, it has to be found once more.
type Emptied struct {
	// Took says that the load balancer that was read last is the one, Nothing that none of the group has anything of the Service.
	Took, Nothing bool
	// Empty is what was found empty, see [presence.Absences.Empty].
	Empty presence.Emptiness
}

// FindForRemoval finds the load balancer of a group on which the Service has something: the one with the id, else one with its marks, else
// one on which nobody is, which the Service may have begun to make. That one goes with what is on it: an answer that shows nothing of
// anybody else is asked for again. read reads one.
func (g *Groups[LB]) FindForRemoval(
	ctx context.Context, svc *corev1.Service, group mark.Group, at Current[LB], empty presence.Emptiness, id string,
	read func(*LB) (Contents, error),
) (found Emptied, err error) {
	candidates, named, err := g.Candidates(ctx, svc, group, at.Known, id)
	if err != nil {
		return Emptied{Empty: empty}, err
	}
	for i := range candidates {
		found, err = g.findOn(ctx, svc, group, at, empty, &candidates[i], named, read)
		if err != nil || found.Took || named {
			return found, err
		}
	}
	if at.Former == "" {
		return Emptied{Empty: empty}, ErrNotInGroup
	}
	found.Nothing = true
	found.Empty, err = g.Missing.Empty(empty, "something of the Service in load balancer group "+group.String())
	return found, err
}

// findOn is [Groups.FindForRemoval] on one load balancer. The one with the id is the one also where nothing on it is the Service's.
func (g *Groups[LB]) findOn(
	ctx context.Context, svc *corev1.Service, group mark.Group, at Current[LB], empty presence.Emptiness, lb *LB, named bool,
	read func(*LB) (Contents, error),
) (Emptied, error) {
	id := g.balancerID(lb)
	found, err := read(lb)
	if err != nil {
		return Emptied{Took: true, Empty: empty}, err
	}
	used, err := g.IsUsed(svc, group, id)
	if err != nil {
		return Emptied{Took: true, Empty: empty}, err
	}
	if found.Others || used {
		return Emptied{Took: found.Has || named}, nil
	}
	if at.Former == "" && !found.Has {
		if begun, err := g.MayHaveBegun(ctx, svc, group, at.Known, id); err != nil || !begun {
			return Emptied{Empty: empty}, err
		}
	}
	empty, err = g.confirmEmpty(empty, id)
	return Emptied{Took: true, Empty: empty}, err
}

// IsLast reports whether a load balancer of a group goes with what a Service has on it, and whether Services of the group use it. others
// says that it stays for somebody else. Just before it goes, it has to be found empty again: Services may have used it when it was read, so
// that one answer showed nothing of anybody else.
func (g *Groups[LB]) IsLast(
	svc *corev1.Service, group mark.Group, id string, others bool, empty presence.Emptiness,
) (used, last bool, err error) {
	if used, err = g.IsUsed(svc, group, id); err != nil || used || others {
		return used, false, err
	}
	_, err = g.confirmEmpty(empty, id)
	return false, err == nil, err
}

// confirmEmpty is an error until more than one answer has shown nothing of anybody else on a load balancer of a group.
func (g *Groups[LB]) confirmEmpty(empty presence.Emptiness, id string) (presence.Emptiness, error) {
	return g.Missing.Empty(empty, "a listener of somebody else on "+g.Product.Name+" "+id)
}
