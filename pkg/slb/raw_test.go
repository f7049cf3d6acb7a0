package slb

// raw makes a call that the client has no method for, as a person at the console would, and leaves it out of the count.
func (w *world) raw(version, action string, parameters map[string]string, into any) {
	w.t.Helper()
	w.calls()
	w.emulator.Raw(version, action, parameters, into)
	w.calls()
}
