package diff

import (
	"slices"
	"strings"
)

// SameAttribute compares two spellings of one attribute.
func SameAttribute(name, a, b string) bool {
	switch name {
	case "HealthCheckHttpCode", "AclId":
		return sortedList(a) == sortedList(b)
	case "HealthCheckConnectPort":
		return connectPort(a) == connectPort(b)
	case "ListenerForward", "AclStatus", "ConnectionDrain":
		return offByDefault(a) == offByDefault(b)
	}
	return a == b
}

func sortedList(text string) string {
	items := strings.Split(text, ",")
	slices.Sort(items)
	return strings.Join(items, ",")
}

// connectPort: -520, 0 and no answer all mean the port of the member.
func connectPort(text string) string {
	if text == "" || text == "0" {
		return "-520"
	}
	return text
}

func offByDefault(text string) string {
	if text == "" {
		return "off"
	}
	return text
}
