package office_test

// This file tests that anybody can read the protocol's schema from a running office.

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestTheProtocolsSchemaIsThereForEverybody(t *testing.T) {
	b := open(t)
	url := "http" + strings.TrimPrefix(b.url, "ws") + "/v1/protocol/schema"
	ask := func(method, known string) (*http.Response, []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		b.must(err)
		if known != "" {
			r.Header.Set("If-None-Match", known)
		}
		response, err := http.DefaultClient.Do(r)
		b.must(err)
		body, err := io.ReadAll(response.Body)
		b.must(err)
		b.must(response.Body.Close())
		return response, body
	}
	got, body := ask(http.MethodGet, "")
	if got.StatusCode != http.StatusOK || !bytes.Equal(body, protocol.Schema()) {
		t.Errorf("GET gave %s and %d bytes", got.Status, len(body))
	}
	if kind := got.Header.Get("Content-Type"); kind != "application/schema+json" {
		t.Errorf("the schema's type is %q", kind)
	}
	tag := got.Header.Get("ETag")
	if again, body := ask(http.MethodGet, tag); again.StatusCode != http.StatusNotModified || len(body) != 0 || tag == "" {
		t.Errorf("whoever has %q gets %s and %d bytes", tag, again.Status, len(body))
	}
	if other, body := ask(http.MethodGet, `"another"`); other.StatusCode != http.StatusOK || len(body) == 0 {
		t.Errorf("whoever has another one gets %s and %d bytes", other.Status, len(body))
	}
	if head, body := ask(http.MethodHead, ""); head.StatusCode != http.StatusOK || len(body) != 0 || head.Header.Get("ETag") != tag {
		t.Errorf("HEAD gave %s, %d bytes and %q", head.Status, len(body), head.Header.Get("ETag"))
	}
	if post, _ := ask(http.MethodPost, ""); post.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST gave %s", post.Status)
	}
}
