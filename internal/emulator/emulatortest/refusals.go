package emulatortest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Refusal is a story that ends with a call that the cloud refuses. Each line of it is a call, as its action and its parameters:
//
//	CreateLoadBalancer AddressType=internet > lb=LoadBalancerId
//
// keeps a field of the answer, which later lines name as $lb; "vpc:AllocateEipAddress" is an action of another product, and "wait 5s" lets
// time pass. All calls but the last
// one succeed.
type Refusal struct {
	Name  string
	Story string
	// Code is that of the last answer, empty for one that is taken.
	Code string
	// Config changes what there is in the beginning.
	Config func(*cloud.Config)
}

// Story returns a [Refusal] with the changes of what there is in the beginning.
func Story(name, story, code string, changes ...func(*cloud.Config)) Refusal {
	return Refusal{Name: name, Story: story, Code: code, Config: func(c *cloud.Config) {
		for _, change := range changes {
			change(c)
		}
	}}
}

// settle is how long changes of the cloud take in stories.
const settle = time.Second

// Products are those that stories call; the first one is under test.
type Products []func(*cloud.Store) api.Product

// CheckRefusals tells each story to products of its own, below HTTP, and has each code that the sources of the first one name be the end of
// one. elsewhere are codes that no
// call of a story can meet, with the reason.
func CheckRefusals(t *testing.T, products Products, elsewhere map[string]string, stories ...Refusal) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			config := cloud.DefaultConfig()
			if s.Config != nil {
				s.Config(config)
			}
			store, err := cloud.New(config, settle)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(store.Close)
			s.tell(t, store, products)
		})
	}
	for _, code := range codesOf(t) {
		told := slices.ContainsFunc(stories, func(s Refusal) bool { return s.Code == code })
		if told == (elsewhere[code] != "") {
			t.Errorf("code %s: a story ends with it: %v, and no story can: %q", code, told, elsewhere[code])
		}
	}
}

func (s *Refusal) tell(t *testing.T, store *cloud.Store, products Products) {
	t.Helper()
	var all []api.Product
	for _, product := range products {
		all = append(all, product(store))
	}
	table, kept, now := api.NewTable(all...), map[string]string{}, store.Now()
	lines := strings.Split(strings.TrimSpace(s.Story), "\n")
	for i, line := range lines {
		for name, value := range kept {
			line = strings.ReplaceAll(line, "$"+name, value)
		}
		words, keep, _ := strings.Cut(strings.TrimSpace(line), " > ")
		if d, ok := strings.CutPrefix(words, "wait "); ok {
			pause, err := time.ParseDuration(d)
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(pause)
			continue
		}
		answer, err := call(t, store, table, strings.Fields(words), now)
		last := i == len(lines)-1
		if code := codeOf(err); code != "" && !last || last && code != s.Code {
			t.Fatalf("%s: refused with %q (%v), want %q", words, code, err, s.Code)
		}
		if name, field, ok := strings.Cut(keep, "="); ok {
			kept[name], _ = answer[field].(string)
		}
	}
}

// call carries out a call as the emulator does, without the network, keys and signatures.
func call(t *testing.T, store *cloud.Store, table *api.Table, words []string, now time.Time) (answer map[string]any, err error) {
	t.Helper()
	product, name, other := strings.Cut(words[0], ":")
	if !other {
		product, name = table.Products()[0].Name, words[0]
	}
	action := table.Find(product, name)
	if action == nil {
		t.Fatalf("%s has no action %s", product, name)
	}
	c := &api.Call{Action: action, Region: store.Region, Now: now, Host: now, Params: api.Params{}}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		c.Params[name] = value
	}
	if bad := api.Validate(action.Params, c.Params); bad != nil {
		return nil, bad
	}
	var result any
	store.Update(func() {
		store.Reap(now)
		result, err = action.Run(c)
	})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(text, &answer) // an answer without fields is null
	return answer, nil
}

func codeOf(err error) string {
	var bad *api.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &bad) && bad != nil:
		return bad.Code
	}
	return err.Error()
}

// codesOf returns the codes with which the package in the current directory makes errors.
func codesOf(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if code := codeIn(n); code != "" && !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
			return true
		})
	}
	return codes
}

// codeIn returns the code of a call such as api.BadRequest("Code", ...), empty for anything else.
func codeIn(n ast.Node) string {
	made, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	name := ""
	switch function := made.Fun.(type) {
	case *ast.SelectorExpr:
		name = function.Sel.Name
	case *ast.Ident:
		name = function.Name
	}
	at := map[string]int{"BadRequest": 0, "NotFound": 0, "Forbidden": 0, "Errorf": 1, "refuse": 0}
	i, ok := at[name]
	if !ok || i >= len(made.Args) {
		return ""
	}
	literal, ok := made.Args[i].(*ast.BasicLit)
	if !ok {
		return ""
	}
	code, _ := strconv.Unquote(literal.Value)
	if strings.Contains(code, " ") {
		return "" // fmt.Errorf
	}
	return code
}
