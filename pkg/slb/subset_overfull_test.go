package slb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// quotasRead are those that the Quota Center shows.
func quotasRead(attachments int) *quota.Book {
	book := quota.NewBook(nil)
	book.Read(map[quota.Code]quota.Reading{quota.CLBsPerInstance: {Value: attachments}})
	return book
}

// TestFullInstancesAreNotTried: Services with externalTrafficPolicy Local have pods on all nodes, more of them than an instance can be
// behind CLBs. Where the quota is known, nothing is refused: not while they come, not later, and not by a new process, which does not know
// at first what the others have. Where it is only assumed, one instance in an hour shows that it still holds. The place of a Service that
// goes is taken.
func TestFullInstancesAreNotTried(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const nodes, few, published = 12, 4, 50
	for _, test := range []struct {
		name        string
		book        func() *quota.Book
		attachments int
		clusters    int // Services with Cluster beside them
		// How many calls may be refused while the Services come, in two hours, and by a new process.
		first, later, restarted int
	}{
		{"configured", func() *quota.Book { return smallQuotas(200, few) }, few, 0, 0, 0, 0},
		{"configured, beside Cluster", func() *quota.Book { return smallQuotas(200, few) }, few, 3, 0, 0, 0},
		{"read", func() *quota.Book { return quotasRead(few) }, few, 0, 0, 0, 0},
		{"read, beside Cluster", func() *quota.Book { return quotasRead(few) }, few, 3, 0, 0, 0},
		{"assumed", func() *quota.Book { return quota.NewBook(nil) }, published, 0, 30, 3, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{LBsPerInstance: test.attachments},
					config.Config{BackendSubset: backend.SubsetAuto, Quotas: test.book()})
				defer func() { f.stop() }()
				for i := range nodes {
					f.createFleetNode(nodeName(i))
				}
				for i := range test.clusters {
					f.put(testService(fmt.Sprint("web", i), 80))
				}
				for i := range test.attachments + 2 {
					f.putLocal(fmt.Sprint("local", i), nodes)
				}
				check := func(when string, most int) {
					t.Helper()
					synctest.Wait()
					if n, _ := f.refused(); n > most {
						t.Errorf("%s: %d calls were refused, want %d at most", when, n, most)
					}
				}
				time.Sleep(30 * time.Minute)
				check("they come", test.first)
				time.Sleep(2 * time.Hour)
				check("nothing happens", test.later)
				f.stop()
				f.config.Quotas, f.api = test.book(), processClient(t, f.emulator)
				f.start()
				time.Sleep(30 * time.Minute)
				check("a new process", test.restarted)
				f.freesPlaces()
				check("a Service goes", test.restarted)
			})
		})
	}
}

// freesPlaces deletes the Service with Local that has the most nodes, whose places others take. Those that had none at first have one.
func (f *fleet) freesPlaces() {
	f.t.Helper()
	places := func() (largest string, total int) {
		most := 0
		for _, lb := range f.state() {
			for mark, servers := range lb.Groups {
				name := strings.Split(mark, "/")[2]
				if len(servers) == 0 {
					f.t.Errorf("%s has no backend server", name)
				}
				if total += len(servers); len(servers) > most && strings.HasPrefix(name, "local") {
					largest, most = name, len(servers)
				}
			}
		}
		return largest, total
	}
	largest, before := places()
	f.change(largest, deleteService)
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	if _, after := places(); after < before {
		f.t.Errorf("%d places are taken after a Service has gone, %d were before", after, before)
	}
}
