package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// onlyOneHas are the files that one product has and the other one does not, with the reason. Whoever knows one product finds the way in the
// other, so that a further file needs a name that both have, or a line here.
var onlyOneHas = map[string]string{
	"slb/addresses.go":          "a CLB shows an IP address, and an elastic one may come and go",
	"slb/certificates.go":       "CLBs have certificates of their own service, which expire",
	"slb/clusterid.go":          "the official CCM writes the cluster ID into names of vServer groups, and older versions of it wrote another one",
	"slb/desired.go":            "what is wanted of a CLB; an NLB's stands in plan.go",
	"slb/group_locate.go":       "CLBs are searched by tag, NLBs are listed: in group.go",
	"slb/placement.go":          "VPC, vSwitch and zones of a CLB never change",
	"slb/portroom.go":           "which ports a CLB that Services share has room for; an NLB has room for all",
	"slb/rareparts.go":          "access control lists and domain extensions are read only where there may be some",
	"slb/build/access.go":       "CLBs restrict sources by access control lists, NLBs by a security group",
	"slb/build/certificates.go": "see slb/certificates.go",
	"slb/build/followed.go":     "what a CLB has to have that a Service leaves and still shows; NLBs have the same groups there",
	"slb/build/ineffective.go":  "some settings of CLBs do nothing, and the cloud does not say so",
	"slb/build/redirect.go":     "only CLBs redirect HTTP to HTTPS",
	"slb/build/vgroup.go":       "only CLBs have server groups that an annotation names",
	"slb/deploy/apierrors.go":   "refusals that the cloud of CLBs does not explain",
	"slb/deploy/backends.go":    "backends are written by call and size; NLBs do that in groups.go",
	"slb/deploy/charge.go":      "the cloud shows how a CLB is charged late",
	"slb/deploy/extensions.go":  "only CLBs have domain extensions",
	"slb/deploy/pace.go":        "a CLB takes one write at a time",
	"slb/deploy/quotas.go":      "calls on CLBs say which quota is used up, in several ways",
	"slb/deploy/tags.go":        "CLBs and their tags are written by different calls",
	"slb/diff/extensions.go":    "only CLBs have domain extensions",
	"slb/diff/loadbalancer.go":  "each attribute of a CLB has a call of its own",
	"slb/diff/shares.go":        "weights in groups that Services share",
	"slb/model/accesslist.go":   "see slb/build/access.go",
	"slb/model/parts.go":        "parts of a CLB are read by different calls",
	"slb/model/restore.go":      "a CLB listener that is replaced may have to be put back",
	"slb/observe/access.go":     "see slb/build/access.go",
	"slb/observe/extensions.go": "only CLBs have domain extensions",

	"nlb/creations.go":       "the cloud accepts the creation of an NLB, and may fail later",
	"nlb/group_leader.go":    "attributes of a shared NLB that one call sets for all",
	"nlb/jobs.go":            "calls on NLBs begin jobs",
	"nlb/jobwaits.go":        "calls on NLBs begin jobs",
	"nlb/leaving.go":         "listeners that a Service has left are recognized by their marks",
	"nlb/sharedsettings.go":  "settings of NLBs that Services share",
	"nlb/transitions.go":     "parts of an NLB stay in transition until a job has ended",
	"nlb/build/shared.go":    "settings of NLBs that Services share",
	"nlb/build/zones.go":     "the zones of an NLB are chosen by somebody, those of a CLB by the cloud",
	"nlb/deploy/crowded.go":  "the quota of servers counts each group of an NLB",
	"nlb/deploy/exchange.go": "certificates and security groups are exchanged by two jobs",
	"nlb/deploy/makeroom.go": "jobs that make room go first",
	"nlb/deploy/memory.go":   "what the cloud refused of a job",
	"nlb/deploy/work.go":     "calls on NLBs begin jobs",
	"nlb/diff/values.go":     "an attribute of an NLB is compared like any other",
}

// TestProductsHaveTheSameRooms: CLB and NLB have the same packages, and the same file names in them.
func TestProductsHaveTheSameRooms(t *testing.T) {
	t.Parallel()
	clb, nlb := filesOf(t, "slb"), filesOf(t, "nlb")
	rooms := func(files map[string]bool) []string {
		var found []string
		for file := range files {
			found = append(found, filepath.Dir(file))
		}
		return slices.Compact(slices.Sorted(slices.Values(found)))
	}
	if a, b := rooms(clb), rooms(nlb); !slices.Equal(a, b) {
		t.Errorf("CLB has the packages %v, NLB %v", a, b)
	}
	differences := map[string]bool{}
	for file := range clb {
		if !nlb[file] {
			differences["slb/"+file] = true
		}
	}
	for file := range nlb {
		if !clb[file] {
			differences["nlb/"+file] = true
		}
	}
	for _, file := range slices.Sorted(maps.Keys(differences)) {
		if onlyOneHas[file] == "" {
			t.Errorf("only one product has pkg/%s: give it a name that both have, or say in onlyOneHas why", file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(onlyOneHas)) {
		if !differences[file] {
			t.Errorf("onlyOneHas has %s, which both products have, or none", file)
		}
	}
}

// filesOf are the production files of a product, by their path in its directory.
func filesOf(t *testing.T, product string) map[string]bool {
	t.Helper()
	root := filepath.Join("..", "..", "pkg", product)
	files := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		inside, err := filepath.Rel(root, path)
		files[filepath.ToSlash(inside)] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
