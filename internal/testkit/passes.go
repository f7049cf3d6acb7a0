package testkit

import "time"

// Passes makes passes for a time in a synctest bubble, as they become due: a pass returns after what time the next one is, 0 for none in
// this time. One that fails is made again after a second, and then after twice as long each time, up to two minutes.
func Passes(over time.Duration, pass func() (time.Duration, error)) {
	failed := time.Second
	for end := time.Now().Add(over); time.Now().Before(end); {
		wait, err := pass()
		if err != nil {
			wait, failed = failed, min(2*failed, 2*time.Minute)
		} else {
			failed = time.Second
		}
		if wait == 0 || time.Now().Add(wait).After(end) {
			wait = time.Until(end)
		}
		time.Sleep(wait) //nolint:forbidigo // tests call this in a synctest bubble
	}
}
