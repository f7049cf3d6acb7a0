package slb

import (
	"context"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// extension changes the domain extensions of a listener.
func (a *applier) extension(ctx context.Context, step Step) error {
	extension := step.extension
	switch step.Op {
	case OpCreateExtension:
		id, err := a.api.CreateDomainExtension(ctx, a.model.LoadBalancer.ID, step.listener.Port, extension)
		if a.call(err) != nil {
			return err
		}
		extension.ID = id
	case OpSetExtension:
		if err := a.call(a.api.SetDomainExtension(ctx, extension.ID, extension.CertificateID)); err != nil {
			return err
		}
	default:
		if err := a.call(a.api.DeleteDomainExtension(ctx, extension.ID)); err != nil {
			return err
		}
	}
	have := a.model.listener(step.listener.ListenerKey)
	have.Extensions = slices.DeleteFunc(slices.Clone(have.Extensions), func(e alicloud.DomainExtension) bool { return e.ID == extension.ID })
	if step.Op != OpDeleteExtension {
		have.Extensions = append(have.Extensions, extension)
	}
	return nil
}
