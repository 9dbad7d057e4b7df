// Package browser drives a real Chromium without a window: it opens pages, looks at them, types and clicks, and remembers every complaint that
// the browser has about a page.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds every wait; nothing waits for it in the good case.
const patience = 20 * time.Second

// T is what a browser needs of a test, or of a program that is none. Fatal does not return.
type T interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// Find gives the path of Chromium: the variable CHROMIUM, or what is on PATH.
func Find() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no Chromium on PATH: install it (on Debian: apt-get install chromium), or name one in CHROMIUM")
}

// Browser is a Chromium that runs.
type Browser struct {
	t   T
	ctx context.Context
}

// Open starts a Chromium that ends with the test.
func Open(t T) *Browser {
	t.Helper()
	path, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.Flag("hide-scrollbars", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which Chromium refuses to have as root
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() { end(); endAllocator() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal("Chromium does not start:", err)
	}
	return &Browser{t: t, ctx: ctx}
}

// Page is one tab, of a profile of its own: nothing is left of tabs before.
type Page struct {
	t   T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// Page opens a tab of that size.
func (b *Browser) Page(t T, width, height int64) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	p := &Page{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.listen); err != nil { // which opens the tab, for as long as this context lives
		t.Fatal(err)
	}
	// Each page behaves as if it was the one in front, so that tests need not wait for each other.
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(width, height))
	return p
}

// listen remembers errors and warnings of the console, exceptions, and what the browser itself reports, such as a breach of the policy.
func (p *Page) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			args, _ := json.Marshal(e.Args)
			text = "console: " + string(args)
		}
	case *runtime.EventExceptionThrown:
		details, _ := json.Marshal(e.ExceptionDetails)
		text = "exception: " + string(details)
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			text = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	}
	if text != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.complaints = append(p.complaints, text)
	}
}

// Complaints gives what the browser complained about, but for what has one of these texts in it, which the test provoked.
func (p *Page) Complaints(provoked ...string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for _, c := range p.complaints {
		expected := false
		for _, text := range provoked {
			expected = expected || strings.Contains(c, text)
		}
		if !expected {
			list = append(list, c)
		}
	}
	return list
}

func (p *Page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal("the browser does not do it:", err)
	}
}

// Go opens an address.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(url))
}

// Size changes the size of the page.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// Dark says whether the reader likes it dark.
func (p *Page) Dark(dark bool) {
	p.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// Picture is what the page looks like, as PNG.
func (p *Page) Picture() []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal("there is no picture:", err)
	}
	return png
}

// Click clicks on what a selector finds.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(selector))
}

// Type types into what has the focus. Enter is "\r", Tab "\t".
func (p *Page) Type(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// Fill replaces what a field has, as a user does.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	p.do(chromedp.Focus(selector))
	p.Eval(fmt.Sprintf(`document.querySelector(%q).select()`, selector))
	p.do(chromedp.KeyEvent("\b"), chromedp.KeyEvent(text))
}

// Eval runs an expression in the page, and gives what comes of it as JSON.
func (p *Page) Eval(expression string) string {
	p.t.Helper()
	text, err := p.eval(expression)
	if err != nil {
		p.t.Fatal(expression, "fails:", err)
	}
	return text
}

func (p *Page) eval(expression string) (string, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	wrapped := "(async () => JSON.stringify(await (" + expression + ")) ?? 'null')()"
	return chromedp.Run(ctx, chromedp.Evaluate[string](wrapped, chromedp.EvalAwaitPromise))
}

// Until waits until an expression is true.
func (p *Page) Until(expression string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		text, err := p.eval(expression)
		if err == nil && text == "true" {
			return
		}
		if time.Now().After(deadline) {
			shown, _ := p.eval("document.body.innerText.slice(-3000)")
			p.t.Fatal(fmt.Sprintf("it never comes that %s (%s, %v); the page shows %s; complaints: %v", expression, text, err, shown, p.Complaints()))
		}
		time.Sleep(20 * time.Millisecond) // between two looks at another program
	}
}

// Shows waits until the page has a text where a selector finds something.
func (p *Page) Shows(selector, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.checkVisibility() && e.innerText.includes(%s))`, selector, quote(text)))
}

// Text gives the text of what a selector finds first.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	var text string
	if err := json.Unmarshal([]byte(p.Eval(fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ''`, selector))), &text); err != nil {
		p.t.Fatal(err)
	}
	return text
}

func quote(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}
