package annotation

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// bareSuffix is a suffix that stands for a key: it cannot be pasted.
var bareSuffix = regexp.MustCompile(`(^|[^-a-z])loadbalancer-[a-z]`)

// bareValue is a value that YAML reads as a boolean: the API server refuses an annotation to which it is pasted.
var bareValue = regexp.MustCompile(`: (on|off|true|false)\b`)

// TestMessagesHaveWholeKeys: whoever corrects an annotation can paste its key and its value from the message.
func TestMessagesHaveWholeKeys(t *testing.T) {
	t.Parallel()
	for name, family := range map[string]*family{"CLB": clbFamily, "NLB": nlbFamily} {
		messages := map[string]bool{}
		parse := func(annotations map[string]string) {
			_, problems := family.parseAnnotations(annotations)
			for _, found := range problems {
				messages[found.Message] = true
			}
		}
		for _, row := range family.rows {
			for _, value := range []string{"\x00", "on", "insert", "server", "true", "classic", "intranet", row.Default, row.Value.Sample} {
				parse(map[string]string{row.Suffix.Key(): value, fullKey(1, row.Suffix): "x"})
			}
		}
		parse(map[string]string{Prefixes[0] + "loadbalancer-idd": "lb-1", Prefixes[0] + "no-such-thing": "1"})
		for _, rule := range family.rules {
			messages[rule.message] = true
		}
		if len(messages) < len(family.rows) {
			t.Errorf("%s: %d messages of %d annotations: where are the others?", name, len(messages), len(family.rows))
		}
		for message := range messages {
			if bareSuffix.MatchString(message) {
				t.Errorf("%s: %q has a key that cannot be pasted", name, message)
			}
			if bareValue.MatchString(strings.ReplaceAll(message, "accepted: ", "")) {
				t.Errorf("%s: %q has a value that YAML reads as a boolean", name, message)
			}
		}
	}
	if got := fmt.Sprintf("%s, %s", LoadBalancerID,
		Suffix(BackendType)); got != "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-id, service.beta.kubernetes.io/backend-type" {
		t.Errorf("keys %s", got)
	}
}
