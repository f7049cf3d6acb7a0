package slb

import (
	"context"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func (a *applier) createExtension(ctx context.Context, step Step) error {
	extension := step.extension
	id, err := a.api.CreateDomainExtension(ctx, a.model.LoadBalancer.ID, step.listener.Port, extension)
	if a.call(err) != nil {
		return err
	}
	extension.ID = id
	listener := a.model.listener(step.listener.ListenerKey)
	listener.Extensions = append(withoutExtension(listener, id), extension)
	return nil
}

func (a *applier) setExtension(ctx context.Context, step Step) error {
	extension := step.extension
	if err := a.call(a.api.SetDomainExtension(ctx, extension.ID, extension.CertificateID)); err != nil {
		return err
	}
	listener := a.model.listener(step.listener.ListenerKey)
	listener.Extensions = append(withoutExtension(listener, extension.ID), extension)
	return nil
}

func (a *applier) deleteExtension(ctx context.Context, step Step) error {
	if err := a.call(a.api.DeleteDomainExtension(ctx, step.extension.ID)); err != nil {
		return err
	}
	listener := a.model.listener(step.listener.ListenerKey)
	listener.Extensions = withoutExtension(listener, step.extension.ID)
	return nil
}

func withoutExtension(listener *Listener, id string) []alicloud.DomainExtension {
	return slices.DeleteFunc(slices.Clone(listener.Extensions), func(e alicloud.DomainExtension) bool { return e.ID == id })
}
