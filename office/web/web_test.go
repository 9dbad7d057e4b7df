package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/web"
)

// get asks for a path, with header fields as names and values in turn.
func get(method, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestWhatIsServed(t *testing.T) {
	for _, c := range []struct {
		name, method, path string
		status             int
		contentType        string
	}{
		{"the page is at the root", "GET", "/", 200, "text/html; charset=utf-8"},
		{"the page can be asked about", "HEAD", "/", 200, "text/html; charset=utf-8"},
		{"modules are JavaScript", "GET", "/assets/app.js", 200, "text/javascript; charset=utf-8"},
		{"modules may be in a folder", "GET", "/assets/transcript/fold.js", 200, "text/javascript; charset=utf-8"},
		{"styles are CSS", "GET", "/assets/page.css", 200, "text/css; charset=utf-8"},
		{"the icon is a picture", "GET", "/assets/favicon.svg", 200, "image/svg+xml"},
		{"the page has one address", "GET", "/assets/index.html", 404, ""},
		{"assets have no other address", "GET", "/app.js", 404, ""},
		{"folders are not listed", "GET", "/assets/", 404, ""},
		{"nothing leads out", "GET", "/assets/../web.go", 404, ""},
		{"the page takes nothing", "POST", "/", 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := get(c.method, c.path)
			if r.StatusCode != c.status {
				t.Fatalf("the status is %d, not %d", r.StatusCode, c.status)
			}
			if c.status != http.StatusOK {
				return
			}
			if got := r.Header.Get("Content-Type"); got != c.contentType {
				t.Errorf("the type is %s, not %s", got, c.contentType)
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
					"frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
			} {
				if got := r.Header.Get(name); got != want {
					t.Errorf("%s is %q, not %q", name, got, want)
				}
			}
		})
	}
}

func TestABrowserThatHasAFileGetsNothing(t *testing.T) {
	etag := get("GET", "/assets/app.js").Header.Get("ETag")
	if len(etag) < 20 || etag == get("GET", "/").Header.Get("ETag") {
		t.Fatalf("the tag is %s", etag)
	}
	r := get("GET", "/assets/app.js", "If-None-Match", etag)
	body, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusNotModified || len(body) > 0 {
		t.Errorf("the answer is %d with %d bytes", r.StatusCode, len(body))
	}
	if r := get("GET", "/assets/app.js", "If-None-Match", `"of another release"`); r.StatusCode != http.StatusOK {
		t.Errorf("the answer is %d", r.StatusCode)
	}
}

// What the page is made of is all here: no other host, no code in the markup, and every file that one names exists.
func TestThePageNeedsNobodyElse(t *testing.T) {
	seen := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		r := get("GET", path)
		body, _ := io.ReadAll(r.Body)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s is missing", path)
			return
		}
		text := strings.ReplaceAll(string(body), "http://www.w3.org/2000/svg", "")
		for _, banned := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=", " onclick=", "@import", "://cdn"} {
			if strings.Contains(text, banned) {
				t.Errorf("%s has %q", path, banned)
			}
		}
		for _, m := range regexp.MustCompile(`(?:from|href=|src=)\s*["'](/assets/[^"']+|\.{1,2}/[^"']+)["']`).FindAllStringSubmatch(text, -1) {
			visit(resolve(path, m[1]))
		}
	}
	visit("/")
	if len(seen) < 20 {
		t.Errorf("only %d files were found: %v", len(seen), seen)
	}
}

// resolve is where a reference in a file leads.
func resolve(from, to string) string {
	if strings.HasPrefix(to, "/") {
		return to
	}
	r := httptest.NewRequest("GET", from, nil)
	u, err := r.URL.Parse(to)
	if err != nil {
		return to
	}
	return u.Path
}
