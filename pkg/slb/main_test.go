package slb

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(&closing{m})
}

// closing ends the connections that the shared transport keeps; they are no leak of this package.
type closing struct{ m *testing.M }

func (c *closing) Run() int {
	defer http.DefaultClient.CloseIdleConnections()
	return c.m.Run()
}
