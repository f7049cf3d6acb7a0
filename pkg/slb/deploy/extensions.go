package deploy

import (
	"context"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

func (a *Applier) createExtension(ctx context.Context, step model.Step) error {
	extension := step.Extension
	var id string
	err := a.callOnce(ctx, func() (err error) {
		id, err = a.api.CreateDomainExtension(ctx, a.model.LoadBalancer.ID, step.Listener.Port, extension)
		return err
	})
	if err != nil {
		return err
	}
	extension.ID = id
	listener := a.model.Listener(step.Listener.ListenerKey)
	listener.Extensions = append(withoutExtension(listener, id), extension)
	return nil
}

func (a *Applier) setExtension(ctx context.Context, step model.Step) error {
	extension := step.Extension
	if err := a.callOnce(ctx, func() error { return a.api.SetDomainExtension(ctx, extension.ID, extension.CertificateID) }); err != nil {
		return err
	}
	listener := a.model.Listener(step.Listener.ListenerKey)
	listener.Extensions = append(withoutExtension(listener, extension.ID), extension)
	return nil
}

func (a *Applier) deleteExtension(ctx context.Context, step model.Step) error {
	if err := a.callOnce(ctx, func() error { return a.api.DeleteDomainExtension(ctx, step.Extension.ID) }); err != nil {
		return err
	}
	listener := a.model.Listener(step.Listener.ListenerKey)
	listener.Extensions = withoutExtension(listener, step.Extension.ID)
	return nil
}

func withoutExtension(listener *model.Listener, id string) []alicloud.DomainExtension {
	return slices.DeleteFunc(slices.Clone(listener.Extensions), func(e alicloud.DomainExtension) bool { return e.ID == id })
}
