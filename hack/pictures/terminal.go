package main

// This file draws what kubectl bullpen logs prints: what it writes for a terminal, as a page that looks like one.

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/transcript"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/test/web/browser"
	"github.com/bullpen-dev/bullpen/test/web/stage"
)

// columns is how wide the terminal is, and rows how much of it is shown, from the top.
const columns, rows = 104, 38

// logs is what kubectl bullpen logs prints of a session.
func logs(t browser.T, s *stage.Stage, id string) string {
	session := get[feed.Session](s, http.MethodGet, "/v1/sessions/"+id, nil)
	page := get[struct {
		Records  []json.RawMessage `json:"records"`
		Earliest int64             `json:"earliest_feed_seq"`
	}](s, http.MethodGet, "/v1/sessions/"+id+"/records?limit=1000", nil)
	p := transcript.New(transcript.Options{Width: columns, Color: true, Zone: time.UTC})
	out := p.Begin(&session, page.Earliest, 0)
	for _, raw := range page.Records {
		r, err := feed.DecodeRecord(raw)
		if err != nil {
			t.Fatal(err)
		}
		out += p.Record(&r)
	}
	lines := strings.Split(out, "\n")
	return strings.Join(lines[:min(rows, len(lines))], "\n")
}

// mark is a code that begins a style, or ends all of them.
var mark = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// classes are the styles of the page for the codes that the transcript writes.
var classes = map[string]string{"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}

// look is what the terminal looks like.
const look = `<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #1b1e24; color: #e7e6e2; }
.title { background: #2b3038; color: #9ba2ae; font: 13px system-ui, sans-serif; padding: 9px 16px; }
.title i { display: inline-block; width: 11px; height: 11px; border-radius: 50%; background: #434a55; margin-right: 7px; vertical-align: -1px; }
pre { margin: 0; padding: 16px 20px; font: 14.5px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; }
.bold { font-weight: 700; } .dim { color: #8b929e; } .red { color: #ff9389; } .green { color: #6fd09a; } .yellow { color: #e6b45c; } .cyan { color: #7cc7e0; }
</style><div class="title"><i></i><i></i><i></i>kubectl bullpen logs -f cart-rounding -n web</div><pre>`

// terminal gives a picture of a text with marks.
func terminal(t browser.T, b *browser.Browser, text string) []byte {
	var page strings.Builder
	page.WriteString(look)
	open := 0
	at := 0
	for _, m := range mark.FindAllStringSubmatchIndex(text, -1) {
		page.WriteString(html.EscapeString(text[at:m[0]]))
		at = m[1]
		if class := classes[text[m[2]:m[3]]]; class != "" {
			page.WriteString(`<span class="` + class + `">`)
			open++
			continue
		}
		page.WriteString(strings.Repeat("</span>", open))
		open = 0
	}
	page.WriteString(html.EscapeString(text[at:]) + "</pre>")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page.String()))
	}))
	defer server.Close()
	p := b.Page(t, 980, 840)
	p.Go(server.URL)
	return p.Picture()
}
