package rpc

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

var missing = api.Missing("Action")

type inner struct{ Total int }

type sample struct {
	inner
	Lists struct{ Item []string }
	Plain []api.Object `json:"plain"`
	Left  []string     `json:",omitempty"`
	Name  string
}

func TestSuccess(t *testing.T) {
	t.Parallel()
	v := sample{inner: inner{2}, Plain: []api.Object{{{Name: "On", Value: true}}, {}}, Name: `<a&"b">`}
	v.Lists.Item = []string{"x", "y"}
	tests := []struct {
		name   string
		format Format
		result any
		want   string
	}{
		{"json", JSON, v, `{"RequestId":"id","Total":2,"Lists":{"Item":["x","y"]},"plain":[{"On":true},{}],"Name":"\u003ca\u0026\"b\"\u003e"}`},
		{"xml", XML, v,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DoResponse><RequestId>id</RequestId><Total>2</Total><Lists><Item>x</Item><Item>y</Item></Lists><plain><On>true</On></plain><plain></plain><Name>&lt;a&amp;&#34;b&#34;&gt;</Name></DoResponse>"},
		{"json without result", JSON, nil, `{"RequestId":"id"}`},
		{"xml without result", XML, nil, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DoResponse><RequestId>id</RequestId></DoResponse>"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, err := Success("Do", "id", test.format, test.result)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, string(a.Body)); d != "" {
				t.Error(d)
			}
		})
	}
}
