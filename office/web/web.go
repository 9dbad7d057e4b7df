// Package web is the web page of the office: static files that are built into the program, and the handler that serves them. The page is
// plain HTML, CSS and JavaScript modules, without a build step, a framework or anything of another host. It uses the session endpoints below
// /v1 like any other client: it has no rights of its own, and who reads it needs none.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// policy is the page's Content-Security-Policy: nothing but what this office serves, and nobody may put it into a frame. So a text of an
// agent that found its way into the page as code would still not run.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// file is one file of the page, and what it is served with.
type file struct {
	body        []byte
	contentType string
	etag        string
}

// Handler serves the page at / and what it is made of below /assets/. Other paths are not found. It panics where the program was built
// without the page.
func Handler() http.Handler {
	files := read()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, isAsset := strings.CutPrefix(r.URL.Path, "/assets/")
		if r.URL.Path == "/" {
			name = "index.html"
		}
		f, known := files[name]
		switch {
		case !known, isAsset == (name == "index.html"):
			http.Error(w, "there is nothing here; the page is at /", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page can be read only", http.StatusMethodNotAllowed)
		default:
			f.serve(w, r)
		}
	})
}

// serve answers with the file, or with nothing where the browser has it already. It always asks, so that all files are of one release.
func (f file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", f.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
}

// types are those of the files that there are; what a machine says about file names does not matter.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// read gives the files by their names.
func read() map[string]file {
	files := map[string]file{}
	err := fs.WalkDir(static, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		contentType := types[path.Ext(name)]
		if contentType == "" {
			contentType = mime.TypeByExtension(path.Ext(name))
		}
		files[strings.TrimPrefix(name, "static/")] = file{body: body, contentType: contentType, etag: `"` + hex.EncodeToString(sum[:16]) + `"`}
		return nil
	})
	if err != nil || files["index.html"].body == nil {
		panic("web: the program was built without its page")
	}
	return files
}
