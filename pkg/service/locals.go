package service

// locals is how many times instances are backends of Services that have those on which their pods run, or would be if they could. Nobody
// chooses them, so that the other Services have what these leave. Its zero value is empty.
type locals struct {
	// times is how many times all instances together are one, services how many times one would be if each of the Services had it.
	times, services int
	// on are the load balancers that several Services share.
	on map[string]*sharedLocals
}

// sharedLocals are the Services on a load balancer: how many of them have each instance, and how many choose theirs.
type sharedLocals struct {
	of     map[string]int
	choose int
}

// times is how many times instances are backends. Services that choose theirs count for all nodes already, whichever they have.
func (s *sharedLocals) times() int {
	if s.choose > 0 {
		return 0
	}
	return len(s.of)
}

// count notes that a Service has its backends, by 1, or has them no more, by -1.
func (l *locals) count(held stake, by int) {
	if held.local {
		l.services += by * held.each
	}
	if held.on == "" {
		if held.local {
			l.times += by * held.each * (len(held.ids) + len(held.lacking))
		}
		return
	}
	if l.on == nil {
		l.on = map[string]*sharedLocals{}
	}
	shared := l.on[held.on]
	if shared == nil {
		shared = &sharedLocals{of: map[string]int{}}
		l.on[held.on] = shared
	}
	before := shared.times()
	shared.count(held, by)
	l.times += held.each * (shared.times() - before)
	if shared.choose == 0 && len(shared.of) == 0 {
		delete(l.on, held.on)
	}
}

func (s *sharedLocals) count(held stake, by int) {
	if !held.local {
		s.choose += by
		return
	}
	add(s.of, held.ids, by)
	add(s.of, held.lacking, by)
}

// among returns how many times n of all nodes are one together, on average.
func (l *locals) among(n, nodes int) int {
	times := l.times
	if nodes > n {
		times = (times*n + nodes - 1) / nodes
	}
	return min(times, l.services*n)
}
