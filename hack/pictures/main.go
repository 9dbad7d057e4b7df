// Command pictures makes the pictures of the documentation anew: it starts an office with a made-up team at work, opens its web page in a real
// Chromium, and draws what kubectl bullpen logs prints. Nothing in them is painted by hand.
//
// The Makefile calls it; see pictures there.
package main

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"

	"github.com/bullpen-dev/bullpen/test/web/browser"
	"github.com/bullpen-dev/bullpen/test/web/stage"
)

// most is how many bytes a picture has at most: they are part of every clone.
const most = 200 << 10

// studio is what stands in for a test where pictures are made.
type studio struct{ cleanups []func() }

func (s *studio) Helper()          {}
func (s *studio) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *studio) TempDir() string {
	dir, err := os.MkdirTemp("", "bullpen-pictures-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *studio) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"pictures:"}, args...)...)
	s.end()
	os.Exit(1)
}

// end cleans up, the latest first.
func (s *studio) end() {
	list := s.cleanups
	s.cleanups = nil
	for i := len(list) - 1; i >= 0; i-- {
		list[i]()
	}
}

func main() {
	dir := filepath.Join("docs", "pictures")
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	t := &studio{}
	defer t.end()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := stage.Open(t, "ada", "brian", "chen", "dana")
	session := play(s)
	b := browser.Open(t)
	p := b.Page(t, 1280, 800)
	p.Go(s.URL() + "/")
	p.Dark(false)
	p.Shows("h1", "Watch your agents work")
	p.Eval(`localStorage.setItem('bullpen.namespace', 'web')`)
	p.Type(stage.TokenAll + "\r")
	p.Shows("tbody td", "blocked")
	t.save(dir, "sessions.png", p.Picture())
	p.Eval(fmt.Sprintf(`void (location.hash = '#/s/' + encodeURIComponent(%q))`, session.id))
	p.Shows(".connection-live", "live")
	p.Shows(".block-tool", "Bash")
	session.speaks()
	p.Shows(".live-text", session.last)
	p.Shows(".live-thought", "∴")
	p.Eval(`new Promise((done) => setTimeout(done, 300))`) // the animation of the page's first look is over
	t.save(dir, "session-light.png", p.Picture())
	p.Dark(true)
	t.save(dir, "session-dark.png", p.Picture())
	t.save(dir, "logs.png", terminal(t, b, logs(t, s, session.id)))
}

// save writes a picture, packed as tightly as PNG allows.
func (s *studio) save(dir, name string, picture []byte) {
	img, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		s.Fatal(name, "is no picture:", err)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, img); err != nil {
		s.Fatal(err)
	}
	if out.Len() > len(picture) {
		out = *bytes.NewBuffer(picture)
	}
	if out.Len() > most {
		s.Fatal(name, "has", out.Len(), "bytes, more than", most)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		s.Fatal(err)
	}
	fmt.Printf("%s: %d KB\n", path, out.Len()>>10)
}
