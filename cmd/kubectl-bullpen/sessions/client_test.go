package sessions_test

// This file tests requests to the office: who sends them, whom they trust, and what comes back.

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions/sessionstest"
	"github.com/bullpen-dev/bullpen/office/feed"
)

func dial(t *testing.T, o *sessionstest.Office, config *rest.Config, edit ...func(*sessions.Options)) *sessions.Client {
	t.Helper()
	options := sessions.Options{URL: o.Address(), CA: o.CA(), Wait: 1}
	for _, e := range edit {
		e(&options)
	}
	c, err := sessions.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func good() *rest.Config { return &rest.Config{Host: "https://api.example.com", BearerToken: "good"} }

// Whatever shows to the API server who the user is, shows it to the office, by requests and by streams.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := file("token", "from-file", 0o600)
	plugin := file("plugin", `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}'
`, 0o700)
	certificate, key := pair(t)
	for name, test := range map[string]struct {
		config *rest.Config
		user   string
	}{
		"a token":                          {&rest.Config{BearerToken: "t0k3n"}, "Bearer t0k3n"},
		"a token in a file":                {&rest.Config{BearerTokenFile: token}, "Bearer from-file"},
		"a program":                        {&rest.Config{ExecProvider: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: plugin, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}, "Bearer from-plugin"},
		"a name and password":              {&rest.Config{Username: "ada", Password: "x"}, "Basic YWRhOng="},
		"a client certificate":             {&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate, KeyData: key}}, "Acme Co"},
		"nothing of the CA of the cluster": {&rest.Config{BearerToken: "t0k3n", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("of the cluster"), ServerName: "kubernetes"}}, "Bearer t0k3n"},
		"nothing of an insecure cluster":   {&rest.Config{BearerToken: "t0k3n", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "Bearer t0k3n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := sessionstest.New(t)
			o.Change(func(o *sessionstest.Office) {
				o.Users = []string{test.user}
				o.Session.Conversation.State = feed.ConversationClosed
			})
			test.config.Host = "https://api.example.com"
			c := dial(t, o, test.config)
			if s, err := c.Session(t.Context(), "item-1"); err != nil || s.ID != "s1-item-1" {
				t.Errorf("a request gives %v, %v", s, err)
			}
			if err := c.Follow(t.Context(), "s1-item-1", 0, &recorder{}); err != nil {
				t.Errorf("a stream gives %v", err)
			}
		})
	}
}

// pair is a certificate of the common name of httptest's, with its key, PEM.
func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	return clientPair(t, "Acme Co")
}

func TestCredentialsGoToNobodyElse(t *testing.T) {
	o, other := sessionstest.New(t), authority(t)
	for name, test := range map[string]struct {
		edit func(*sessions.Options)
		says string
	}{
		"another CA":          {func(o *sessions.Options) { o.CA = other }, "certificate signed by unknown authority"},
		"no CA":               {func(o *sessions.Options) { o.CA = nil }, "certificate"},
		"another server name": {func(o *sessions.Options) { o.ServerName = "bullpen-office.bullpen.svc" }, "bullpen-office.bullpen.svc"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, o, &rest.Config{Host: "https://api.example.com", BearerToken: "good", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, test.edit)
			if _, err := c.Session(t.Context(), "item-1"); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("a request gives %v", err)
			}
			if err := c.Follow(t.Context(), "item-1", 0, &recorder{}); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("a stream gives %v", err)
			}
			o.Change(func(o *sessionstest.Office) {
				if len(o.Asked) > 0 {
					t.Errorf("the office was asked for %v", o.Asked)
				}
			})
		})
	}
}

func TestWhatCannotBeDialed(t *testing.T) {
	for name, test := range map[string]struct {
		config *rest.Config
		url    string
		says   string
	}{
		"without TLS":      {good(), "http://office.example.com", "https"},
		"without a host":   {good(), "https:///x", "https"},
		"as somebody else": {&rest.Config{Host: "https://x", Impersonate: rest.ImpersonationConfig{UserName: "grace"}}, "https://office.example.com", "--as"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := url.Parse(test.url)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sessions.New(test.config, sessions.Options{URL: u}); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestProblemsSayWhatTheOfficeSays(t *testing.T) {
	for name, test := range map[string]struct {
		refuse sessionstest.Problem
		says   string
	}{
		"a detail":      {sessionstest.Problem{Status: 409, Title: "The session takes no message", Detail: "the session is closed", Blocked: "closed"}, "the session is closed"},
		"a title alone": {sessionstest.Problem{Status: 503, Title: "Busy"}, "the office answers: Busy"},
	} {
		t.Run(name, func(t *testing.T) {
			o := sessionstest.New(t)
			o.Change(func(o *sessionstest.Office) { o.Refuse["/messages"] = test.refuse })
			_, err := dial(t, o, good()).Say(t.Context(), "item-1", "hello", false)
			var p *sessions.Problem
			if !errors.As(err, &p) || err.Error() != test.says || p.Status != test.refuse.Status || p.BlockedReason != test.refuse.Blocked {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// An answer that is no problem comes from something else: an older office, or a proxy.
func TestAnAnswerOfSomethingElse(t *testing.T) {
	o := sessionstest.New(t)
	o.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	_, err := dial(t, o, good()).Session(t.Context(), "x")
	var p *sessions.Problem
	if !errors.As(err, &p) || p.Type != "" || !strings.Contains(err.Error(), "older release") {
		t.Errorf("the error is %v", err)
	}
	o.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	if _, err := dial(t, o, good()).Session(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("the error is %v", err)
	}
	o.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example.com", http.StatusFound)
	})
	if _, err := dial(t, o, good()).Session(t.Context(), "x"); !sessions.IsStatus(err, http.StatusFound) {
		t.Errorf("the error is %v", err)
	}
}

func TestPagesAndDeeds(t *testing.T) {
	o := sessionstest.New(t)
	o.Change(func(o *sessionstest.Office) { o.Earliest = 7 })
	for range 2500 {
		o.Add(feed.SourceCommand, feed.FormatCommand, "stdout", `{"lines":["x"],  "n": 12345678901234567890}`)
	}
	c := dial(t, o, good())
	after, pages := int64(0), 0
	for more := true; more; pages++ {
		page, err := c.Records(t.Context(), "s1-item-1", after)
		if err != nil {
			t.Fatal(err)
		}
		if page.Earliest != 7 {
			t.Errorf("the earliest record is %d", page.Earliest)
		}
		for i, r := range page.Records {
			if want := max(after, 6) + 1; r.FeedSeq != want {
				t.Fatalf("after %d comes %d", after, r.FeedSeq)
			}
			after = r.FeedSeq
			if !strings.Contains(string(page.Raw[i]), `{"lines":["x"],  "n": 12345678901234567890}`) {
				t.Fatalf("the bytes are not as they were: %s", page.Raw[i])
			}
		}
		more = page.More
	}
	if after != 2506 || pages != 3 {
		t.Errorf("%d pages lead to %d", pages, after)
	}
	if m, err := c.Say(t.Context(), "s1-item-1", "hello", true); err != nil || *m.TurnID != "t9" {
		t.Errorf("a message gives %v, %v", m, err)
	}
	if err := c.Stop(t.Context(), "s1-item-1"); err != nil {
		t.Error(err)
	}
	found, err := c.OfItem(t.Context(), "shop", "fix-login")
	if err != nil || len(found) != 1 || found[0].ID != "s1-item-1" {
		t.Errorf("by name there are %v, %v", found, err)
	}
	o.Change(func(o *sessionstest.Office) {
		if len(o.Said) != 1 || o.Said[0] != (sessionstest.Said{Body: "hello", Closes: true}) || o.Stopped != 1 {
			t.Errorf("the office heard %v and %d stops", o.Said, o.Stopped)
		}
	})
}

func authority(t *testing.T) []byte {
	t.Helper()
	certificate, _ := clientPair(t, "somebody")
	return certificate
}

// clientPair is a certificate that signs itself, with its key, PEM.
func clientPair(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	der, keyDER := selfSigned(t, name)
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		t.Fatal(err)
	}
	return certificate, key
}
