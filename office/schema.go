package office

// This file serves the JSON Schema of the agent protocol, for those who write an agent in another language.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// serveSchema gives everybody the schema: it tells nothing of this office but its release's protocol.
func serveSchema() http.HandlerFunc {
	schema := protocol.Schema()
	sum := sha256.Sum256(schema)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "application/schema+json")
		header.Set("Cache-Control", "no-cache") // that is: ask again, and be told if it is still the same
		header.Set("ETag", tag)
		header.Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(schema))
	}
}
