//go:build browser

package main

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestInChromium reads the site on a phone and on a desk: nothing is wider than the screen, search finds pages, and the theme is that of
// the system until the reader chooses another.
func TestInChromium(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(site(t)))))
	t.Cleanup(server.Close)
	b := newBrowser(t)

	var wide []string
	b.do("phone", chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	for name := range documents(t, site(t)) {
		b.open(server.URL + "/main/" + strings.TrimSuffix(name, "index.html"))
		if width := b.eval(`String(document.documentElement.scrollWidth)`); width != "360" {
			wide = append(wide, fmt.Sprintf("%s is %s wide", name, width))
		}
	}
	if len(wide) > 0 {
		t.Errorf("pages scroll sideways on a phone of 360 px:\n%s", strings.Join(wide, "\n"))
	}
	b.open(server.URL + "/main/how-to/install/")
	b.holds("the menu is closed on a phone", `!document.querySelector(".menu").open`)

	b.do("desk", chromedp.EmulateViewport(1400, 900))
	b.open(server.URL + "/")
	b.holds("the start leads to the documentation", `location.pathname === "/main/"`)
	b.do("search", chromedp.SendKeys(".search input", "CertificateExpiring"))
	b.holds("search finds the event",
		`[...document.querySelectorAll(".search li a")].some((a) => a.textContent.startsWith("Troubleshooting"))`)
	const empty = `document.querySelector(".search input").value = ""`
	b.do("nothing", chromedp.Evaluate(empty, nil), chromedp.SendKeys(".search input", "nosuchword"))
	b.holds("search says that it finds nothing", `document.querySelector(".search ol").textContent === "No page has all these words"`)
	b.do("again", chromedp.Evaluate(empty, nil), chromedp.SendKeys(".search input", "uninstall the chart\n"))
	b.holds("enter opens the first result", `location.pathname !== "/main/" && document.body.textContent.includes("ninstall")`)

	const dark = `getComputedStyle(document.body).backgroundColor === "rgb(18, 23, 30)"`
	b.do("light system", scheme("light"))
	b.holds("light", "!("+dark+")")
	b.do("dark system", scheme("dark"))
	b.holds("dark, as the system", dark)
	b.do("choose", chromedp.Click(".theme"))
	b.holds("light, as chosen", "!("+dark+")")
	b.open(server.URL + "/main/how-to/doctor/")
	b.holds("the choice holds for other pages", "!("+dark+")")
	b.open(server.URL + "/main/project/about/")
	b.bright("the diagram is light, as chosen", `img[src$="components.svg"]`, true)
	b.do("choose again", chromedp.Click(".theme"))
	b.bright("the diagram is dark, as chosen", `img[src$="components.svg"]`, false)
	b.do("light system", scheme("light"))
	b.bright("the diagram stays dark, as chosen", `img[src$="components.svg"]`, false)
	b.open(server.URL + "/main/how-to/doctor/")
	b.do("versions", chromedp.Click(".versions summary"), chromedp.Click(".versions a[aria-current]"))
	b.holds("the menu of versions stays on the page", `location.pathname === "/main/how-to/doctor/"`)
}

func scheme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// browser is a headless Chromium with one tab.
type browser struct {
	context.Context
	t *testing.T
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("chromium is missing: install the package chromium (%v)", err)
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(time.Minute),
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // it may have ended
		cancel()
		closeTab()
		stop()
		if c := chromedp.FromContext(allocator); c != nil && c.Allocator != nil {
			c.Allocator.Wait()
		}
	})
	return &browser{Context: ctx, t: t}
}

func (b *browser) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.do(url, chromedp.Navigate(url))
}

// bright checks the background of a picture as the reader sees it.
func (b *browser) bright(what, selector string, want bool) {
	b.t.Helper()
	b.do("show", chromedp.ScrollIntoView(selector))
	b.holds("the picture is loaded", "document.querySelector('"+selector+"').naturalWidth > 0")
	var shot []byte
	b.do("screenshot", chromedp.Screenshot(selector, &shot))
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		b.t.Fatal(err)
	}
	const corner, half = 8, 0x80                                                                         // inside the border
	if got := color.GrayModel.Convert(picture.At(corner, corner)).(color.Gray).Y; (got > half) != want { //nolint:forcetypeassert // the model converts to it
		b.t.Errorf("%s: it is not, its brightness is %d of 255", what, got)
	}
}

func (b *browser) eval(expression string) (result string) {
	b.t.Helper()
	b.do(expression, chromedp.Evaluate(expression, &result))
	return result
}

// holds waits until an expression of the page is true. Errors in between are those of a page that is being left.
func (b *browser) holds(what, expression string) {
	b.t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		var holds bool
		if err := chromedp.Run(b, chromedp.Evaluate("!!("+expression+")", &holds)); err == nil && holds {
			return
		}
		select {
		case <-deadline:
			b.t.Fatalf("%s: not in time: %s", what, expression)
		case <-tick.C:
		}
	}
}
