package problem

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// What users may write is bounded before it becomes part of a message: one annotation may have 256 kB, and its text would come back in
// conditions, in events and in the memory of the manager, several times over and with every control character written out.
const (
	// maxValue is how many bytes of a value a message quotes.
	maxValue = 100
	// maxMessage is how many bytes the message of a problem has.
	maxMessage = 1024
	// maxJoined is how many messages of one reason are joined.
	maxJoined = 20
	// MaxCondition is how many bytes the message of a condition has. The API server accepts 32 KiB.
	MaxCondition = 4096
)

// Value quotes a value in a message.
func Value(text string) string {
	if len(text) <= maxValue {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q (%d bytes)", Cut(text, maxValue), len(text))
}

// Cut returns at most limit bytes of the text, and shows that some are missing.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const missing = "…"
	end := limit - len(missing)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	// What follows keeps a part of the text, and must not keep all of it in memory.
	return strings.Clone(text[:end]) + missing
}
