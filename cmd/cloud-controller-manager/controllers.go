package main

import (
	"context"
	"fmt"
	"maps"
	"sync"

	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	"k8s.io/cloud-provider/names"
	controllermanager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

// nlbController is the name in --controllers, as in the official CCM, of what serves Services with an NLB. Without it, the service
// controller leaves them alone.
const nlbController = "nlb"

// constructors are the stock ones with our service and route controllers in the place of theirs, under the same names, so that flags,
// aliases and roles stay valid, and with a controller of ours beside the stock one for nodes. It is a copy: the stock map is a package
// variable that others may share.
func constructors() map[string]app.ControllerInitFuncConstructor {
	all := maps.Clone(app.DefaultInitFuncConstructors)
	all[nlbController] = all[names.ServiceLBController] // with its identity
	replace(all, nlbController, startNLB)
	replace(all, names.ServiceLBController, startServices)
	replace(all, names.NodeRouteController, startRoutes)
	accompany(all, names.CloudNodeController, startNodes)
	lifecycle := all[names.CloudNodeLifecycleController]
	lifecycle.Constructor = newLifecycle
	all[names.CloudNodeLifecycleController] = lifecycle
	var once sync.Once
	for name := range all {
		if name != names.NodeRouteController {
			accompany(all, name, leftOut(&once))
		}
	}
	return all
}

// leftOut clears up after the route controller where --controllers leaves that one out, beside whichever controller starts first.
func leftOut(once *sync.Once) start {
	return func(ctx context.Context, completed *config.CompletedConfig, cloud *provider.Cloud) (ctrl controller.Interface, enabled bool, err error) {
		if isEnabled(names.NodeRouteController, completed) {
			return nil, false, nil
		}
		once.Do(func() { ctrl, enabled, err = runRoutes(ctx, cloud, cloud.LeftOutController) })
		return ctrl, enabled, err
	}
}

// start makes and runs one controller of ours; enabled is false where a flag switches it off.
type start func(ctx context.Context, completed *config.CompletedConfig, cloud *provider.Cloud) (ctrl controller.Interface, enabled bool, err error)

func replace(all map[string]app.ControllerInitFuncConstructor, name string, run start) {
	constructor := all[name]
	constructor.Constructor = func(_ app.ControllerInitContext, completed *config.CompletedConfig, cloud cloudprovider.Interface) app.InitFunc {
		return func(ctx context.Context, _ controllermanager.ControllerContext) (controller.Interface, bool, error) {
			ours, ok := cloud.(*provider.Cloud)
			if !ok {
				return nil, false, fmt.Errorf("controller %s needs cloud provider %s, not %s", name, provider.Name, cloud.ProviderName())
			}
			return run(ctx, completed, ours)
		}
	}
	all[name] = constructor
}

// accompany starts a controller of ours beside the stock one of the name, wherever that one runs.
func accompany(all map[string]app.ControllerInitFuncConstructor, name string, run start) {
	constructor := all[name]
	stock := constructor.Constructor
	constructor.Constructor = func(initContext app.ControllerInitContext, completed *config.CompletedConfig, cloud cloudprovider.Interface) app.InitFunc {
		init := stock(initContext, completed, cloud)
		return func(ctx context.Context, controllers controllermanager.ControllerContext) (controller.Interface, bool, error) {
			ctrl, enabled, err := init(ctx, controllers)
			ours, ok := cloud.(*provider.Cloud)
			if err != nil || !enabled || !ok {
				return ctrl, enabled, err
			}
			_, _, err = run(ctx, completed, ours)
			return ctrl, enabled, err
		}
	}
	all[name] = constructor
}

// newLifecycle starts the stock node lifecycle controller as the stock app does, but for the Nodes that it sees.
func newLifecycle(initContext app.ControllerInitContext, completed *config.CompletedConfig, cloud cloudprovider.Interface) app.InitFunc {
	return func(ctx context.Context, controllers controllermanager.ControllerContext) (controller.Interface, bool, error) {
		settings := completed.ComponentConfig.NodeLifecycleController
		nodes, err := provider.LifecycleNodes(completed.SharedInformers.Core().V1().Nodes())
		if err != nil {
			return nil, false, err
		}
		ctrl, err := nodelifecycle.NewCloudNodeLifecycleController(
			nodes, completed.ClientBuilder.ClientOrDie(initContext.ClientName), cloud,
			settings.NodeMonitorPeriod.Duration, int(settings.ConcurrentNodeLifecycleSyncs))
		if err != nil {
			return nil, false, fmt.Errorf("make the node lifecycle controller: %w", err)
		}
		go ctrl.Run(ctx, controllers.ControllerManagerMetrics)
		return nil, true, nil
	}
}

func startNodes(ctx context.Context, completed *config.CompletedConfig, cloud *provider.Cloud) (controller.Interface, bool, error) {
	ctrl, err := cloud.NodeController(completed.ComponentConfig.NodeStatusUpdateFrequency.Duration)
	if err != nil {
		return nil, false, err
	}
	cloud.Go(func() { ctrl.Run(ctx) })
	return ctrl, true, nil
}

func startServices(ctx context.Context, _ *config.CompletedConfig, cloud *provider.Cloud) (controller.Interface, bool, error) {
	ctrl, err := cloud.ServiceController()
	if err != nil {
		return nil, false, err
	}
	cloud.Go(func() { ctrl.Run(ctx) })
	return ctrl, true, nil
}

// startNLB runs the service controller if the name of that one does not: one controller serves all products.
func startNLB(ctx context.Context, completed *config.CompletedConfig, cloud *provider.Cloud) (controller.Interface, bool, error) {
	if isEnabled(names.ServiceLBController, completed) {
		return nil, true, nil
	}
	return startServices(ctx, completed, cloud)
}

// isEnabled reports whether --controllers has a controller run.
func isEnabled(name string, completed *config.CompletedConfig) bool {
	return controllermanager.IsControllerEnabled(name, app.ControllersDisabledByDefault, completed.ComponentConfig.Generic.Controllers)
}

func startRoutes(ctx context.Context, completed *config.CompletedConfig, cloud *provider.Cloud) (controller.Interface, bool, error) {
	if !completed.ComponentConfig.KubeCloudShared.ConfigureCloudRoutes {
		return runRoutes(ctx, cloud, cloud.UnroutedController)
	}
	return runRoutes(ctx, cloud, cloud.RouteController)
}

// runRoutes makes and runs the route controller, or what stands in for it.
func runRoutes(ctx context.Context, cloud *provider.Cloud, build func() (*vpcroute.Controller, error)) (controller.Interface, bool, error) {
	ctrl, err := build()
	if err != nil {
		return nil, false, err
	}
	cloud.Go(func() { ctrl.Run(ctx) })
	return ctrl, true, nil
}
