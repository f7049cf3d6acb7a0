package alicloud

import "testing"

// TestCanonicalAddresses: a server has one spelling, whatever the API writes.
func TestCanonicalAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2001:db8:0:0::1": "2001:db8::1", "2001:DB8::1": "2001:db8::1", "10.1.0.9": "10.1.0.9", "i-1": "i-1", "eni-1": "eni-1", "": "",
	} {
		if got := canonicalAddress(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
