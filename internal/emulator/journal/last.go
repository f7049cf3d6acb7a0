package journal

// Last returns at most n calls, the newest first.
func (j *Journal) Last(n int) []Call {
	j.mu.Lock()
	defer j.mu.Unlock()
	n = min(n, len(j.ring))
	calls := make([]Call, 0, n)
	for i := range n {
		calls = append(calls, j.ring[(j.start+len(j.ring)-1-i)%len(j.ring)])
	}
	return calls
}
