package mark

import (
	"strconv"
	"strings"
)

// drained follows the port in the mark of a backend whose weight this program has set to 0. No name of a port has such characters.
// Ownership does not depend on what a mark says of the port, so that the official CCM takes the backend for the same one.
const drained = "_drained_"

// Drained returns the mark of a backend whose weight this program sets to 0, with the weight that it had: it is to have that again when it
// takes traffic again, also if weights that others have set stay, and after a restart. It says false for a text that has no place for that.
func Drained(text string, weight int) (marked string, ok bool) {
	end := endOfPort(text)
	if end < 0 {
		return text, false
	}
	return text[:end] + drained + strconv.Itoa(weight) + text[end:], true
}

// Undrained returns the mark that [Drained] was made of, and the weight. Any other text is returned as it is.
func Undrained(text string) (plain string, weight int, ok bool) {
	if !strings.Contains(text, drained) { // each pass asks this of all backends
		return text, 0, false
	}
	end := max(endOfPort(text), 0)
	at := strings.Index(text[:end], drained)
	if at < 0 {
		return text, 0, false
	}
	weight, err := strconv.Atoi(text[at+len(drained) : end])
	if err != nil {
		return text, 0, false
	}
	return text[:at] + text[end:], weight, true
}

// endOfPort returns where the port ends that a mark begins with, -1 for a text that is no mark.
func endOfPort(text string) int {
	separator := "/"
	if _, _, ok := Parse(text); !ok {
		if _, _, ok = ParseNLB(text); !ok {
			return -1
		}
		separator = nlbSeparator
	}
	begin := len(markPrefix) + len(separator)
	return begin + strings.Index(text[begin:], separator)
}
