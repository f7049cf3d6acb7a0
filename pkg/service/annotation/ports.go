package annotation

import (
	"iter"
	"strconv"
	"strings"
)

// Pairs yields the items "key:value" of a list with commas.
func Pairs(list string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for item := range strings.SplitSeq(list, ",") {
			if key, value, ok := strings.Cut(item, ":"); ok && !yield(key, value) {
				return
			}
		}
	}
}

// VGroupsOf reads the annotation vgroup-port: the ids of the groups of others that ports of the Service join. On a CLB
// of our own there are none.
func VGroupsOf(params Params) (ids map[int32]string, twice []int32) {
	ids = map[int32]string{}
	for id, text := range Pairs(params.Get(VGroupPort)) {
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			continue
		}
		if _, again := ids[int32(port)]; again {
			twice = append(twice, int32(port))
		}
		ids[int32(port)] = id
	}
	return ids, twice
}
