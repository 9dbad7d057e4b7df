package feedtest

// This file encodes what an agent uploads.

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// Upload is an upload frame of entries, whose payloads are as they are but for blanks between tokens. It panics on a payload that is no
// JSON.
func Upload(entries ...feed.Entry) []byte {
	var frame bytes.Buffer
	encoder := json.NewEncoder(&frame)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(feed.Upload{Type: feed.IngestUpload, Entries: entries}); err != nil {
		panic(fmt.Sprintf("an upload cannot be encoded: %v", err))
	}
	return bytes.TrimSpace(frame.Bytes())
}
