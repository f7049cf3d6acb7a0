package provider

import (
	"slices"
	"testing"
)

func TestAPIServerAddresses(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"https://10.1.0.9:6443": "10.1.0.9", "10.1.0.9:6443": "10.1.0.9", "10.1.0.9": "10.1.0.9", "https://[2001:db8::1]:6443": "2001:db8::1",
		"https://localhost:6443": "127.0.0.1", "https://no.such.host.invalid": "",
	} {
		got := APIServerAddresses(t.Context(), host)
		if want == "" && len(got) != 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("addresses of %s: %v, want %q", host, got, want)
		}
	}
}
