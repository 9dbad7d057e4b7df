package web

// This file runs the tests of the page's pure modules, which are JavaScript too, in the browser that runs the page.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/bullpen-dev/bullpen/office/web"
)

func TestTheModulesOfThePage(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/assets/", web.Handler())
	mux.Handle("/modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir("modules"))))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>modules</title><link rel="icon" href="/assets/favicon.svg"><script type="module" src="/modules/all.js"></script>`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	p := chromium.Page(t, 800, 600)
	p.Go(server.URL + "/")
	p.Until(`window.outcome !== undefined`)
	var outcome struct {
		Count    int
		Failures map[string]string
	}
	if err := json.Unmarshal([]byte(p.Eval(`window.outcome`)), &outcome); err != nil {
		t.Fatal(err)
	}
	for name, failure := range outcome.Failures {
		t.Errorf("%s: %s", name, failure)
	}
	if outcome.Count < 30 {
		t.Errorf("only %d tests were found", outcome.Count)
	}
	for _, c := range p.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
}
