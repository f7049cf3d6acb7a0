package provider

import "strings"

// lettersPerMistake bounds how different a name may be from the one that is suggested.
const lettersPerMistake = 3

// suggestion returns the known name that a misspelled one is probably meant to be, to follow that name. Empty if none is similar.
func suggestion(name string, known []string) string {
	best, distance := "", max(len(name)/lettersPerMistake, 1)+1
	for _, candidate := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// editDistance is how many characters must be inserted, deleted or replaced to turn one text into the other.
func editDistance(from, to string) int {
	previous := make([]int, len(to)+1)
	for n := range previous {
		previous[n] = n
	}
	for i := range len(from) {
		current := make([]int, len(to)+1)
		current[0] = i + 1
		for j := range len(to) {
			replaced := previous[j]
			if from[i] != to[j] {
				replaced++
			}
			current[j+1] = min(replaced, previous[j+1]+1, current[j]+1)
		}
		previous = current
	}
	return previous[len(to)]
}
