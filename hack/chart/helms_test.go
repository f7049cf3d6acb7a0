package chart

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/hack/chart/render"
)

// blank is what both Helms print differently: blank lines, and the separators of empty documents.
var blank = regexp.MustCompile(`(?m)^(---|[ \t]*)\n`)

// TestHelms holds both Helms to what the package render says: its tests do not run the program that users have.
func TestHelms(t *testing.T) {
	t.Parallel()
	for name, pkg := range helms() {
		helm := func(t *testing.T, o render.Options, args ...string) result {
			t.Helper()
			return run(t.Context(), t, nil, tool(t, pkg), append(append(args, chartDir), o.Flags()...)...)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := helm(t, render.Options{}, "lint", "--strict"); got.code != 0 {
				t.Errorf("lint: %s%s", got.stdout, got.stderr)
			}
			for _, test := range render.Refused {
				got := helm(t, test.Options, "template", "ccm")
				for _, want := range test.Want {
					if got.code == 0 || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "s3cr3t") {
						t.Errorf("%v: exit code %d, %s, want an error that holds %q", test.Options, got.code, got.stderr, want)
					}
				}
			}
		})
		for _, version := range render.KubernetesVersions {
			t.Run(name+", Kubernetes "+version, func(t *testing.T) {
				t.Parallel()
				for setting, sets := range render.Settings {
					o := render.Options{KubeVersion: version, Set: sets}
					want, err := render.Template(chartDir, o)
					if err != nil {
						t.Fatal(err)
					}
					got := helm(t, o, "template", "ccm")
					if diff := cmp.Diff(blank.ReplaceAllString(want, ""), blank.ReplaceAllString(got.stdout, "")); diff != "" || got.code != 0 {
						t.Errorf("%s: %s (-want +got)\n%s", setting, got.stderr, diff)
					}
				}
			})
		}
	}
}
