package api

import (
	"encoding/base64"
	"encoding/binary"
)

// Numbered are the rules of paging by number; limit is the largest page that the action serves.
func Numbered(limit int) []Param {
	return []Param{Num("PageNumber", 1, 0), Num("PageSize", 1, limit)}
}

// Tokened are the rules of paging by token; name is MaxResults, or MaxResult where the cloud spells it so.
func Tokened(name string, limit int) []Param {
	return []Param{Num(name, 1, limit), Str("NextToken")}
}

// Page is one numbered page.
type Page[T any] struct {
	Items         []T
	Number, Total int
	Size          int
}

// PageOf cuts the requested page out of all; def is the page size without a PageSize parameter.
func PageOf[T any](c *Call, all []T, def int) Page[T] {
	p := Page[T]{Number: c.Int("PageNumber", 1), Size: c.Int("PageSize", def), Total: len(all)}
	from := min((p.Number-1)*p.Size, len(all))
	p.Items = all[from:min(from+p.Size, len(all))]
	return p
}

// NumberedList answers with the requested page of all, each item as view makes it, in a list named list of elements named element.
func NumberedList[T, V any](c *Call, all []T, def int, list, element string, view func(T) V) Object {
	p := PageOf(c, all, def)
	views := make([]V, 0, len(p.Items))
	for _, item := range p.Items {
		views = append(views, view(item))
	}
	return Object{
		{"PageNumber", p.Number}, {"PageSize", p.Size}, {"TotalCount", p.Total}, {list, Object{{element, views}}},
	}
}

// TokenPage cuts the items after the request's NextToken out of all, which is ordered by seq. The token holds the
// sequence number of the last item served, so that objects created or deleted between two pages neither repeat nor hide
// others.
func TokenPage[T any](c *Call, all []T, size int, seq func(T) int64) (items []T, next string, err error) {
	after := int64(0)
	if t := c.Str("NextToken"); t != "" {
		raw, decodeErr := base64.RawURLEncoding.DecodeString(t)
		if decodeErr != nil || len(raw) != 8 {
			return nil, "", Invalid("NextToken", "not a token of this action")
		}
		after = int64(binary.BigEndian.Uint64(raw)) //nolint:gosec // only ever compared
	}
	from := 0
	for from < len(all) && seq(all[from]) <= after {
		from++
	}
	items = all[from:min(from+size, len(all))]
	if from+size < len(all) {
		next = base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(seq(items[len(items)-1])))) //nolint:gosec // only ever compared
	}
	return items, next, nil
}
