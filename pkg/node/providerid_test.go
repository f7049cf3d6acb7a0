package node

import (
	"errors"
	"testing"
)

func TestParseProviderID(t *testing.T) {
	t.Parallel()
	hangzhou := ProviderID{Region: "cn-hangzhou", InstanceID: "i-bp1g6zv0ce8oghu7k4oy"}
	for id, want := range map[string]ProviderID{
		"cn-hangzhou.i-bp1g6zv0ce8oghu7k4oy":               hangzhou,
		"alicloud://cn-hangzhou.i-bp1g6zv0ce8oghu7k4oy":    hangzhou,
		"alicloud:///cn-hangzhou/i-bp1g6zv0ce8oghu7k4oy":   hangzhou,
		"alicloud:///cn-hangzhou-h/i-bp1g6zv0ce8oghu7k4oy": hangzhou,
		"alicloud:///us-east-1/i-0xi1":                     {Region: "us-east-1", InstanceID: "i-0xi1"},
		"alicloud:///us-east-1a/i-0xi1":                    {Region: "us-east-1", InstanceID: "i-0xi1"},
		"alicloud:///cn-shanghai-finance-1b/i-0xi1":        {Region: "cn-shanghai-finance-1", InstanceID: "i-0xi1"},
		"cn-north-2-gov-1.i-1":                             {Region: "cn-north-2-gov-1", InstanceID: "i-1"},
	} {
		got, err := ParseProviderID(id)
		if err != nil || got != want {
			t.Errorf("ParseProviderID(%q) = %+v, %v, want %+v", id, got, err, want)
		}
	}
}

func TestParseProviderIDErrors(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]error{
		"":                                  ErrProviderIDEmpty,
		"k3s://node-1":                      ErrProviderIDForeign,
		"ack-hybrid://cn-hangzhou.i-1":      ErrProviderIDForeign,
		"aws:///eu-west-1a/i-0123":          ErrProviderIDForeign,
		"kind://docker/kind/control-plane":  ErrProviderIDForeign,
		"i-1":                               ErrProviderIDMalformed,
		"cn-hangzhou":                       ErrProviderIDMalformed,
		"cn-hangzhou.":                      ErrProviderIDMalformed,
		".i-1":                              ErrProviderIDMalformed,
		"cn-hangzhou.i-1.i-2":               ErrProviderIDMalformed,
		"alicloud://":                       ErrProviderIDMalformed,
		"alicloud:///":                      ErrProviderIDMalformed,
		"alicloud:///cn-hangzhou.i-1":       ErrProviderIDMalformed,
		"alicloud://cn-hangzhou/i-1":        ErrProviderIDMalformed,
		"cn-hangzhou. i-1":                  ErrProviderIDMalformed,
		"worker.example":                    ErrProviderIDMalformed,
		"alicloud://alicloud://cn-hangzhou": ErrProviderIDMalformed,
	} {
		if got, err := ParseProviderID(id); !errors.Is(err, want) {
			t.Errorf("ParseProviderID(%q) = %+v, %v, want %v", id, got, err, want)
		}
	}
}

func FuzzParseProviderID(f *testing.F) {
	for _, seed := range []string{"", "cn-hangzhou.i-1", "alicloud://cn-hangzhou.i-1", "alicloud:///cn-hangzhou-h/i-1", "k3s://n", "a.b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		parsed, err := ParseProviderID(id)
		if err != nil {
			known := errors.Is(err, ErrProviderIDEmpty) || errors.Is(err, ErrProviderIDForeign) || errors.Is(err, ErrProviderIDMalformed)
			if !known || parsed != (ProviderID{}) {
				t.Fatalf("ParseProviderID(%q) = %+v, %v: want one of the three errors and nothing half read", id, parsed, err)
			}
			return
		}
		for _, written := range []string{parsed.String(), parsed.Prefixed()} {
			if again, err := ParseProviderID(written); err != nil || again != parsed {
				t.Fatalf("ParseProviderID(%q) = %+v, %v, want %+v as from %q", written, again, err, parsed, id)
			}
		}
	})
}
