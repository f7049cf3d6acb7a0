package nlb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Pages of lists by token.
const (
	pageLimit   = 100
	defaultPage = 20
)

// list are the parameters of a list.
func list(params ...api.Param) []api.Param {
	return append(append(params, api.Tokened("MaxResults", pageLimit)...), api.Str("RegionId"))
}

// listed answers with one page of resources by token, each as view makes it; name is that of the list on the wire.
func listed[T cloud.Resource, V any](c *api.Call, name string, all []T, view func(T) V) (any, error) {
	size := c.Int("MaxResults", defaultPage)
	items, next, err := api.TokenPage(c, all, size, cloud.Seq[T])
	if err != nil {
		return nil, err
	}
	views := make([]V, 0, len(items))
	for _, item := range items {
		views = append(views, view(item))
	}
	return listAnswer(name, views, next, len(all), size), nil
}

// listedInPlace answers with one page of items, which stand in their order and have no sequence number.
func listedInPlace[V any](c *api.Call, name string, all []V, size int) (any, error) {
	items, next, err := pageInPlace(c, all, size)
	if err != nil {
		return nil, err
	}
	return listAnswer(name, items, next, len(all), size), nil
}

// pageInPlace cuts one page by token out of items that stand in their order.
func pageInPlace[V any](c *api.Call, all []V, size int) (items []V, next string, err error) {
	places := make([]int64, len(all))
	for i := range places {
		places[i] = int64(i) + 1
	}
	places, next, err = api.TokenPage(c, places, size, func(place int64) int64 { return place })
	items = make([]V, 0, len(places))
	for _, place := range places {
		items = append(items, all[place-1])
	}
	return items, next, err
}

func listAnswer(name string, items any, next string, total, size int) api.Object {
	return api.Object{{Name: name, Value: items}, {Name: "NextToken", Value: next}, {Name: "TotalCount", Value: total},
		{Name: "MaxResults", Value: size}}
}
