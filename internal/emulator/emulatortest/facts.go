package emulatortest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// FactsDir is the environment variable with the directory to which tests write the facts that they met. make facts sets it.
const FactsDir = "EMULATOR_FACTS"

// FlipSettings is the environment variable with settings of all emulators of the tests, for example {"flipped":["slb.created-active"]}:
// tests that then fail depend on the fact.
const FlipSettings = "EMULATOR_FLIP"

func flip(tb testing.TB, e *emulator.Emulator) {
	tb.Helper()
	text := os.Getenv(FlipSettings)
	if text == "" {
		return
	}
	settings := e.Settings()
	err := json.Unmarshal([]byte(text), &settings)
	if err == nil {
		err = e.Change(func(s *emulator.Settings) { *s = settings })
	}
	if err != nil {
		tb.Fatalf("%s: %v", FlipSettings, err)
	}
}

// writing guards the file: tests of one process end at the same time.
var writing sync.Mutex

// WriteFacts notes the facts that a test met, if they are asked for: those of its calls, and others. Facts about traffic are among them
// where the network runs in virtual time; on sockets, chance decides whether a connection comes before a check.
func WriteFacts(tb testing.TB, e *emulator.Emulator, others ...string) {
	tb.Helper()
	dir := os.Getenv(FactsDir)
	if dir == "" {
		return
	}
	name, _, _ := strings.Cut(tb.Name(), "/")
	line := facts.Met{Package: testedPackage(), Test: name}
	met := facts.Set{}
	for _, c := range e.Calls(0) {
		for _, id := range c.Facts {
			met[id] = true
		}
		if c.Status == 200 {
			met[facts.AnswerID(c.Product, c.Action)] = true
		}
	}
	for _, id := range others {
		met[id] = true
	}
	for id := range met {
		line.Facts = append(line.Facts, id)
	}
	data, err := json.Marshal(line)
	if err != nil {
		tb.Fatal(err)
	}
	writing.Lock()
	defer writing.Unlock()
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(os.Getpid())+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(data, '\n')); err != nil {
		tb.Fatal(err)
	}
}

// testedPackage is the path of the package under test within its module.
func testedPackage() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	path := strings.TrimSuffix(strings.TrimSuffix(info.Path, ".test"), "_test")
	for _, dir := range []string{"/pkg/", "/internal/", "/cmd/", "/sandbox/"} {
		if i := strings.Index(path, dir); i >= 0 {
			return path[i+1:]
		}
	}
	return path
}
