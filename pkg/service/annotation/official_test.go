package annotation

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// ownKeys are annotations that the official CCM does not know.
var ownKeys = []Suffix{IPMode, HealthCheck, Group, GroupOverflow, BackendSubset, Move, MoveGrace}

// alsoOfNLB are annotations that the official CCM reads of a CLB only.
var alsoOfNLB = []Suffix{DeleteProtection, ModificationProtection, Hostname}

// latestOfficial is the release of the official CCM with which the README compares.
const latestOfficial = "v2.15.0"

// TestEveryKeyOfTheOfficialCCM: the tables have every annotation that a release of the official CCM reads, for the same products, and
// nothing else but what is of this program. The README says which release that is.
func TestEveryKeyOfTheOfficialCCM(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/official-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	official := map[string]map[Suffix]bool{"clb": {}, "nlb": {}}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(fields) != 3 {
			continue
		}
		newest = max(newest, fields[0])
		for product := range strings.SplitSeq(fields[1], ",") {
			official[product][Suffix(fields[2])] = true
		}
	}
	for product, rows := range map[string][]Row{"clb": Table(), "nlb": NLBTable()} {
		ours := suffixesOf(rows)
		for _, suffix := range slices.Sorted(maps.Keys(official[product])) {
			if !ours[suffix] {
				t.Errorf("%s: the table lacks %s", product, string(suffix))
			}
		}
		for _, suffix := range slices.Sorted(maps.Keys(ours)) {
			if !official[product][suffix] && !slices.Contains(ownKeys, suffix) && (product == "clb" || !slices.Contains(alsoOfNLB, suffix)) {
				t.Errorf("%s: the official CCM has no %s", product, string(suffix))
			}
		}
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if newest != latestOfficial || !strings.Contains(string(readme), "every annotation of the official CCM "+latestOfficial) {
		t.Errorf("the newest key is of %s; the README is to name %s", newest, latestOfficial)
	}
}
