package annotation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// isCheck reports whether an annotation is about health checks. Frameworks for game servers put all of those on every Service, so that only
// the log says which of them act on no listener.
func isCheck(suffix Suffix) bool { return strings.Contains(string(suffix), "health") }

// Idle reports annotations that act on no listener, because no port is served by a protocol that has the setting. protocols are those of
// the listeners, in lower case. While a value is not accepted, or there is no listener, that is reported first.
func (p Params) Idle(protocols sets.Set[string]) []problem.Problem {
	if p.Invalid || len(protocols) == 0 {
		return nil
	}
	var problems []problem.Problem
	for _, row := range p.familyOf().listeners {
		// These name ports, and have problems of their own.
		chooses := row.Suffix == ProtocolPort || row.Suffix == ForwardPort || row.Suffix == ListenerPortRange
		if chooses || isCheck(row.Suffix) || !p.Has(row.Suffix) || p.Reverted[row.Suffix] || protocols.HasAny(row.Protocols...) {
			continue
		}
		subject := row.Suffix.Key()
		if row.Suffix == PersistenceTimeout && p.SessionAffinity {
			subject = "spec.sessionAffinity"
		}
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "%s has no effect: no port is served by %s", subject,
				strings.Join(row.Protocols, " or ")))
	}
	return problems
}

// IdleChecks are the annotations of health checks that act on no listener, as texts for the log.
func (p Params) IdleChecks(protocols sets.Set[string]) []string {
	if p.Invalid || len(protocols) == 0 {
		return nil
	}
	var found []string
	for _, row := range p.familyOf().listeners {
		if isCheck(row.Suffix) && p.Has(row.Suffix) && !protocols.HasAny(row.Protocols...) {
			found = append(found, row.Suffix.Key()+" has no effect: no port is served by "+strings.Join(row.Protocols, " or "))
		}
	}
	return found
}
