package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// instructions are the blocks of a page that a reader types or copies.
	instructions = regexp.MustCompile("(?ms)^```(?:sh|yaml)[^\n]*\n(.*?)^```$")
	remark       = regexp.MustCompile(`(?m) +# .*$`)
)

// TestChinesePagesHaveTheSameCommands: a page in Chinese has the commands of the page in English, in their order, and as many headings.
// Otherwise, it would go stale when the other one changes, and nobody would notice. Remarks behind commands may be translated.
func TestChinesePagesHaveTheSameCommands(t *testing.T) {
	t.Parallel()
	all := pages(t)
	blocks := func(path string) (found []string) {
		for _, match := range instructions.FindAllStringSubmatch(all[path], -1) {
			found = append(found, remark.ReplaceAllString(match[1], ""))
		}
		return found
	}
	for english, chinese := range map[string]string{"README.md": "README.zh-CN.md", "docs/how-to/install.md": "docs/how-to/install.zh-CN.md"} {
		if diff := cmp.Diff(blocks(english), blocks(chinese)); diff != "" || len(blocks(english)) < 4 {
			t.Errorf("commands of %s and %s (-English +Chinese):\n%s", english, chinese, diff)
		}
	}
	const guide = "docs/how-to/install"
	if english, chinese := strings.Count(all[guide+".md"], "\n#"), strings.Count(all[guide+".zh-CN.md"], "\n#"); english != chinese {
		t.Errorf("%s.md has %d headings, and the Chinese page %d", guide, english, chinese)
	}
}
