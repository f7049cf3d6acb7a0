package conformance_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
)

// TestRecordings repeats the calls of recorded accounts: the emulator has to answer as the cloud did.
func TestRecordings(t *testing.T) {
	t.Parallel()
	checkRecordings(t, "../recordings", func(_ string, f conformance.Finding) { t.Error(f) })
}

func checkRecordings(t *testing.T, dir string, differs func(scenario string, f conformance.Finding)) {
	t.Helper()
	all, err := conformance.Recordings(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, d := range all {
		for _, r := range d.Scenarios {
			t.Run(filepath.Base(path)+"/"+r.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for _, f := range replay(t, r) {
						differs(r.Name, f)
					}
				})
			})
		}
	}
}

// TestMeasured: a recording of a real account confirms the facts that it checks, unless it found otherwise; one of an emulator does not. As
// a file among the recordings, it is repeated.
func TestMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for name, flip := range map[string]string{"real": `{"flipped":["vpc.table-available"]}`, "emulator": ""} {
			d := record(t, flip, "vpc/networks", "vpc/route table")
			d.Real, d.Date = name == "real", "2027-01-02"
			if err := d.Write(filepath.Join(dir, name+".json")); err != nil {
				t.Fatal(err)
			}
		}
	})
	got, err := conformance.Measured(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := "2027-01-02, cn-hangzhou"; got["vpc.InvalidVpcId.NotFound"] != want || got["vpc.table-available"] != "" ||
		got["slb.created-active"] != "" {
		t.Errorf("measured: %v", got)
	}
	differing := map[string]bool{}
	checkRecordings(t, dir, func(_ string, f conformance.Finding) { differing[f.Fact] = true })
	if !differing["vpc.table-available"] {
		t.Errorf("the replay found %v", differing)
	}
}
