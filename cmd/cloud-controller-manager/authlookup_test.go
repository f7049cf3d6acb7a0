package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/cloud-provider/options"
)

// TestForbiddenLookupIsSkipped: certificates in a ConfigMap that the role may not read are not looked for; where the answer is not known,
// everything stays as it is.
func TestForbiddenLookupIsSkipped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer string
		status int
		want   bool
	}{
		"allowed": {`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`, http.StatusCreated,
			false},
		"forbidden": {`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false}}`, http.StatusCreated,
			true},
		"no answer": {"", http.StatusInternalServerError, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.answer)
			}))
			defer server.Close()
			file := filepath.Join(t.TempDir(), "kubeconfig")
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
				`"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, server.URL)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			opts, err := options.NewCloudControllerManagerOptions()
			if err != nil {
				t.Fatal(err)
			}
			opts.Authentication.RemoteKubeConfigFile = file
			skipForbiddenLookup(opts)
			if got := opts.Authentication.SkipInClusterLookup; got != test.want {
				t.Errorf("the lookup is skipped: %t, want %t", got, test.want)
			}
		})
	}
}
