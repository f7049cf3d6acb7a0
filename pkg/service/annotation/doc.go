// Package annotation reads the annotations of Services: their keys, the table of what each accepts and does, parsing, and the rules
// between them. Nothing else reads an annotation of the family. It is pure.
package annotation
