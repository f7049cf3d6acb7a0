// Package api describes the actions of the emulated cloud as data: name, kind, parameters with their rules, and the
// function that carries one out. Validation, the coverage test and the generated reference all read this table.
//
// It does not know HTTP, signatures or encodings (package rpc), nor any resource (packages slb, vpc, ecs, sts).
package api

import (
	"fmt"
	"net/http"
)

// Kind distinguishes reads from writes; writes hold the store's exclusive lock.
type Kind string

// The two kinds of actions, as the journal and the fault rules spell them.
const (
	Read  Kind = "read"
	Write Kind = "write"
)

// Action is one operation of one product.
type Action struct {
	Name string
	Kind Kind
	// Params are the parameters that the action reads. Others are accepted and ignored, as the cloud does.
	Params []Param
	// Unsigned actions carry their own proof (an OIDC token) and neither key nor signature.
	Unsigned bool
	// Unrestricted actions need no permission: every key of the account may call them.
	Unrestricted bool
	// DeniedIsEmpty makes a call without permission succeed with an empty list instead of Forbidden.RAM.
	DeniedIsEmpty bool
	// Hold names the resources that one call keeps busy while it is in flight. It runs under the store's lock.
	Hold func(*Call) []string
	// Busy is the answer to a call that needs a resource that another one holds. Required with Hold.
	Busy *Error
	// Run carries the call out under the store's lock (shared for reads) and returns a value that shares no
	// memory with the store, because it is encoded after the lock is released.
	Run func(*Call) (any, error)
}

// Product is a set of actions under one API version.
type Product struct {
	// Name is the product code and the path prefix: slb, vpc, ecs, sts.
	Name    string
	Version string
	Actions []Action
}

// Versions of the APIs of the cloud.
const (
	VersionSLB = "2014-05-15"
	VersionNLB = "2022-04-30"
	VersionVPC = "2016-04-28"
	VersionECS = "2014-05-26"
	VersionSTS = "2015-04-01"
	// VersionQuotas is that of the Quota Center.
	VersionQuotas = "2020-05-10"
)

// VersionOf returns the version of the API of a product, "" for one that the emulator does not have.
func VersionOf(product string) string {
	switch product {
	case "slb":
		return VersionSLB
	case "nlb":
		return VersionNLB
	case "vpc":
		return VersionVPC
	case "ecs":
		return VersionECS
	case "sts":
		return VersionSTS
	case "quotas":
		return VersionQuotas
	}
	return ""
}

// Table finds actions by product and name.
type Table struct {
	products []Product
	byName   map[string]map[string]*Action
}

// NewTable indexes products. Two actions of one name in one product are a programming mistake and panic.
func NewTable(products ...Product) *Table {
	t := &Table{products: products, byName: map[string]map[string]*Action{}}
	for _, p := range products {
		actions := make(map[string]*Action, len(p.Actions))
		for i := range p.Actions {
			a := &p.Actions[i]
			if actions[a.Name] != nil {
				panic(fmt.Sprintf("api: %s %s registered twice", p.Name, a.Name))
			}
			actions[a.Name] = a
		}
		t.byName[p.Name] = actions
	}
	return t
}

// Products returns the table in registration order.
func (t *Table) Products() []Product { return t.products }

// Find returns the action of a product, or nil.
func (t *Table) Find(product, name string) *Action { return t.byName[product][name] }

// ByVersion returns the product of an API version.
func (t *Table) ByVersion(version string) (Product, bool) {
	for _, p := range t.products {
		if p.Version == version {
			return p, true
		}
	}
	return Product{}, false
}

// ByName returns a product by its code.
func (t *Table) ByName(name string) (Product, bool) {
	for _, p := range t.products {
		if p.Name == name {
			return p, true
		}
	}
	return Product{}, false
}

// Error is an answer of the cloud other than success.
type Error struct {
	Status  int
	Code    string
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d): %s", e.Code, e.Status, e.Message) }

// Errorf makes an error of any status.
func Errorf(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// BadRequest makes an error of status 400, the status of most codes.
func BadRequest(code, format string, args ...any) *Error {
	return Errorf(http.StatusBadRequest, code, format, args...)
}

// NotFound makes an error of status 404.
func NotFound(code, format string, args ...any) *Error {
	return Errorf(http.StatusNotFound, code, format, args...)
}

// Forbidden makes an error of status 403.
func Forbidden(code, format string, args ...any) *Error {
	return Errorf(http.StatusForbidden, code, format, args...)
}

// Invalid is the answer to a parameter whose value breaks a rule.
func Invalid(name, reason string, args ...any) *Error {
	return BadRequest("InvalidParameter", "The specified parameter %s is not valid: %s.", name, fmt.Sprintf(reason, args...))
}

// Missing is the answer to a required parameter that is absent.
func Missing(name string) *Error {
	return BadRequest("MissingParameter", "The input parameter %s is mandatory for this action.", name)
}
