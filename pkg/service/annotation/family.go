package annotation

import "slices"

// A family is the annotations of one load balancer product.
type family struct {
	// product is what texts call it.
	product string
	rows    []Row
	// listeners are those of the rows that decide on listeners.
	listeners []Row
	known     map[Suffix]bool
	rules     []rule
	// elsewhere are annotations that only another product has, with the one that this product has in its place, or "".
	elsewhere map[Suffix]Suffix
}

// newFamily returns the family of a product; rows are those beside listeners, or all.
func newFamily(product string, rows, listeners []Row, rules []rule, elsewhere map[Suffix]Suffix) *family {
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Suffix == ProtocolPort }) {
		rows = slices.Concat(rows, listeners)
	}
	return &family{product: product, rows: rows, listeners: listeners, known: suffixesOf(rows), rules: rules, elsewhere: elsewhere}
}

func suffixesOf(rows []Row) map[Suffix]bool {
	known := map[Suffix]bool{}
	for _, row := range rows {
		known[row.Suffix] = true
	}
	return known
}

// familyOf is the family that the parameters were read with.
func (p *Params) familyOf() *family {
	if p.family == nil {
		return clbFamily
	}
	return p.family
}
