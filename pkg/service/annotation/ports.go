package annotation

import (
	"strconv"
	"strings"
)

// VGroupsOf reads the annotation vgroup-port: the ids of the groups of others that ports of the Service join. On a CLB
// of our own there are none.
func VGroupsOf(params Params) (ids map[int32]string, twice []int32) {
	ids = map[int32]string{}
	for item := range strings.SplitSeq(params.Get(VGroupPort), ",") {
		id, text, ok := strings.Cut(item, ":")
		port, err := strconv.ParseInt(text, 10, 32)
		if !ok || err != nil {
			continue
		}
		if _, again := ids[int32(port)]; again {
			twice = append(twice, int32(port))
		}
		ids[int32(port)] = id
	}
	return ids, twice
}
