package lightnode

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestIPAM(t *testing.T) {
	t.Parallel()
	const cidr = "10.244.3.0/29" // .2 to .6 are for pods
	a := newIPAM()
	claim := func(pod types.UID) string {
		t.Helper()
		addr, err := a.claim(pod, cidr)
		if err != nil {
			t.Fatal(err)
		}
		return addr.String()
	}
	for i, want := range []string{"10.244.3.2", "10.244.3.3", "10.244.3.4", "10.244.3.5"} {
		if got := claim(types.UID(rune('a' + i))); got != want {
			t.Errorf("pod %d got %s, want %s", i, got, want)
		}
	}
	if got := claim("b"); got != "10.244.3.3" {
		t.Errorf("the same pod got another address: %s", got)
	}
	a.release("a")
	if got := claim("e"); got != "10.244.3.6" {
		t.Errorf("got %s, want the address that was free longest, 10.244.3.6", got)
	}
	if got := claim("f"); got != "10.244.3.2" {
		t.Errorf("got %s, want the released 10.244.3.2", got)
	}
	if addr, err := a.claim("g", cidr); err == nil {
		t.Errorf("a full range gave %s", addr)
	}
	if _, err := a.claim("h", "10.244.3.0"); err == nil {
		t.Error("a malformed range was accepted")
	}
}
