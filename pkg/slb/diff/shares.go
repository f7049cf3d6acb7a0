package diff

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"

// leastShare is the part of the traffic that counts: a tenth.
const leastShare = 10

// onlyShares reports whether all that a change sets is how much traffic backend servers take, and not whether they take any.
func onlyShares(change backendChange) bool {
	for i := range change.set {
		want, have := change.set[i], change.setBefore[i]
		if want.Weight == 0 || have.Weight == 0 {
			return false
		}
		if want.Weight = have.Weight; want != have {
			return false
		}
	}
	return true
}

// sharesDiffer reports whether a backend server would take another share of the traffic, by more than a tenth of all traffic, if the
// weights stayed as they are. With every endpoint that comes or goes, the weights of all Services with the endpoint would be written
// otherwise. What is small for all traffic may be much for one backend server: an exact model counts a tenth of its own share.
func (d *differ) sharesDiffer(want, have *model.Group) bool {
	present := finder{backends: have.Backends}
	stale := make([]int, len(want.Backends))
	wantTotal, staleTotal := 0, 0
	for i := range want.Backends {
		stale[i] = want.Backends[i].Weight
		if at := present.findBackend(&want.Backends[i].BackendKey); at >= 0 {
			stale[i] = have.Backends[at].Weight
		}
		wantTotal, staleTotal = wantTotal+want.Backends[i].Weight, staleTotal+stale[i]
	}
	for i, server := range want.Backends {
		wanted, difference := server.Weight*staleTotal, server.Weight*staleTotal-stale[i]*wantTotal
		most := wantTotal * staleTotal
		if d.desired.Exact {
			most = wanted
		}
		if max(difference, -difference)*leastShare > most {
			return true
		}
	}
	return false
}
