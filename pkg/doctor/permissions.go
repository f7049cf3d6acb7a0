package doctor

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// probesAtOnce keeps the check-up short without a burst that would throttle a manager of the same account.
const probesAtOnce = 8

// Permissions asks for each action that the features need whether the key may call it. unused are those of the features that nothing in
// the cluster asks for: what only they need is optional.
func Permissions(ctx context.Context, client *alicloud.Client, features, unused []alicloud.Feature) []Check {
	needed := alicloud.ActionsOf(features...)
	checks := make([]Check, len(needed))
	var group errgroup.Group
	group.SetLimit(probesAtOnce)
	for i, action := range needed {
		group.Go(func() error {
			permission, err := client.Probe(ctx, action)
			checks[i] = permissionCheck(action, permission, err)
			if checks[i].Status == Wrong && slices.ContainsFunc(unused, action.IsOnlyFor) {
				checks[i].Status = Optional
			}
			return nil
		})
	}
	// The functions return no error.
	_ = group.Wait()
	return checks
}

func permissionCheck(action alicloud.Action, permission alicloud.Permission, err error) Check {
	check := Check{Area: AreaPermissions, Subject: action.RAM(), Family: action.Product + ":*"}
	switch permission {
	case alicloud.PermissionGranted:
		check.Status, check.Detail = OK, "granted"
	case alicloud.PermissionNotRefused:
		check.Status, check.Detail = OK, "not refused for a resource that does not exist"
	case alicloud.PermissionDenied:
		check.Status, check.Detail = Wrong, fmt.Sprintf("denied; needed for %s (%v)", action.Why, err)
		check.Fix = "add it to the RAM policy of the user or role; docs/reference/ram-policy.json has all that the manager needs"
	default:
		check.Status, check.Detail = NotChecked, err.Error()
	}
	return check
}

// Beyond asks whether the key may do what no feature needs, or what only features need that are switched off. It sees only what can be
// tried without an effect.
func Beyond(ctx context.Context, client *alicloud.Client, features []alicloud.Feature) Check {
	check := Check{Area: AreaPermissions, Subject: "other actions", Status: OK, Detail: "none is granted, as far as reads and dry runs show"}
	var allowed []string
	for _, action := range alicloud.BeyondPolicy(features...) {
		if permission, _ := client.Probe(ctx, action); permission == alicloud.PermissionGranted { //nolint:errcheck // then it is not known
			allowed = append(allowed, action.RAM())
		}
	}
	if len(allowed) > 0 {
		check.Status = Optional
		check.Detail = fmt.Sprintf("the key is also allowed to call %s, and probably more", some(allowed))
		check.Fix = "restrict the key to the RAM policy in docs/reference/ram-policy.md, so that whoever obtains it can do less"
	}
	return check
}
