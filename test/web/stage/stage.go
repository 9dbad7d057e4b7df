// Package stage sets an office up for those who look at its web page, in tests and for pictures: a real office on a real store and feed,
// served on loopback, people whose agents speak the protocol, and sessions whose records they upload. Only Kubernetes is played.
package stage

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

// patience bounds every wait; nothing waits for it in the good case.
const patience = 20 * time.Second

// T is what a stage needs of a test, or of a program that is none. Fatal does not return.
type T interface {
	Helper()
	Fatal(args ...any)
	TempDir() string
	Cleanup(func())
}

// Tokens that the stage's Kubernetes knows: grace may do everything, rita may read only.
const (
	TokenAll    = "token-of-grace"
	TokenReader = "token-of-rita"
)

// Team is the team of everybody on the stage.
var Team = model.TeamKey{Namespace: "web", Name: "storefront"}

// Stage is an office with what belongs to it.
type Stage struct {
	t       T
	path    string
	address string
	office  *office.Office
	store   store.Store
	feed    store.Feed
	stop    func()
	people  []model.Person
	items   map[string]model.ItemFacts

	mu      sync.Mutex
	expired map[string]bool
	sockets []*websocket.Conn
}

// Open sets up an office for people with these handles, who run Claude Code.
func Open(t T, handles ...string) *Stage {
	t.Helper()
	s := &Stage{t: t, path: filepath.Join(t.TempDir(), "office.db"), address: "127.0.0.1:0", items: map[string]model.ItemFacts{}, expired: map[string]bool{}}
	for _, handle := range handles {
		s.people = append(s.people, model.Person{
			UID: "uid-" + handle, Name: handle, Key: model.PersonKey{Team: Team, Handle: handle}, DisplayName: handle, Role: "developer",
			Runtime: "claude", Model: "claude-sonnet-5", TokenHash: sha256.Sum256([]byte("token-" + handle)), CreatedAt: time.Unix(1, 0).UTC(),
		})
	}
	s.Start()
	t.Cleanup(func() { s.Stop() })
	team := model.Team{
		UID: "team-1", Key: Team, Policy: dispatch.DefaultPolicy(), Usage: model.UsagePolicy{PauseAt: 0.95, TrackCost: true}, Config: protocol.DefaultTeamConfig(),
	}
	team.Config.Name = Team.Name
	team.Config.Roles = []protocol.TeamRole{{Name: "developer", Title: "Developer", Work: []protocol.TeamWork{{Kind: "chore", Review: protocol.ReviewNone}}}}
	s.must(s.office.SyncTeam(context.Background(), team))
	for _, p := range s.people {
		s.must(s.office.SyncPerson(context.Background(), p))
	}
	return s
}

func (s *Stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// T is what the stage was set up for.
func (s *Stage) T() T { return s.t }

// URL is where the office is.
func (s *Stage) URL() string { return "http://" + s.address }

// Start opens the office, at the address where it was before.
func (s *Stage) Start() {
	s.t.Helper()
	st, err := sqlite.Open(s.path, sqlite.Options{})
	s.must(err)
	records, err := sqlite.OpenFeed(s.path+".feed", sqlite.FeedOptions{Store: st.ID()})
	s.must(err)
	listener, err := net.Listen("tcp", s.address)
	s.must(err)
	o, err := office.New(office.Options{
		Store: st, Feed: records, Listener: listener, ConfigSettle: time.Millisecond, Access: s, Logger: slog.New(slog.DiscardHandler),
	})
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Start(ctx) }()
	<-o.Listening()
	go func() {
		for {
			select {
			case <-o.Changes():
			case <-ctx.Done():
				return
			}
		}
	}()
	s.office, s.store, s.feed, s.address = o, st, records, listener.Addr().String()
	s.stop = func() {
		cancel()
		s.must(errors.Join(<-done, records.Close(), st.Close()))
	}
}

// Stop ends the office; agents lose their connections.
func (s *Stage) Stop() {
	s.t.Helper()
	if s.stop == nil {
		return
	}
	s.mu.Lock()
	for _, ws := range s.sockets {
		_ = ws.Close()
	}
	s.sockets = nil
	s.mu.Unlock()
	s.stop()
	s.stop = nil
}

// Expire makes a token one that nobody knows.
func (s *Stage) Expire(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired[token] = true
}

// Authenticate knows the stage's tokens, in the header or as the WebSocket subprotocol that browsers use.
func (s *Stage) Authenticate(r *http.Request) (office.User, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, name := range websocket.Subprotocols(r) {
		if carried, ok := strings.CutPrefix(name, "base64url.bearer.authorization.k8s.io."); ok {
			token = decoded(carried)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.expired[token]:
	case token == TokenAll, token == TokenReader:
		return office.User{Name: strings.TrimPrefix(token, "token-of-")}, nil
	}
	return office.User{}, office.ErrUnauthenticated
}

// Allowed lets grace do everything in every namespace but one that nobody may see, and rita read.
func (s *Stage) Allowed(_ context.Context, user office.User, deed office.Deed) (bool, string, error) {
	reads := deed.Verb == "get" || deed.Verb == "list"
	switch {
	case deed.Namespace == "secret":
		return false, "no role says so", nil
	case user.Name == "grace", user.Name == "rita" && reads:
		return true, "", nil
	}
	return false, "no role of " + user.Name + " says so", nil
}

// Item makes a work item of a person, or changes it, and gives its id.
func (s *Stage) Item(name, person string, edits ...func(*model.ItemFacts)) string {
	s.t.Helper()
	f, known := s.items[name]
	if !known {
		f = model.ItemFacts{ID: "uid-" + name, Namespace: Team.Namespace, Name: name, CreatedAt: time.Now().UTC().Truncate(time.Second)}
		f.Spec = model.ItemSpec{
			Hash: "hash-" + name, Team: Team.Name, Person: person, Kind: "task", Title: "Title of " + name, Body: "Body of " + name,
			Requester: "grace", Priority: 100, Trigger: protocol.TriggerHuman,
		}
	}
	f.Spec.Generation++
	for _, edit := range edits {
		edit(&f)
	}
	s.items[name] = f
	_, err := s.office.SyncItem(context.Background(), f)
	s.must(err)
	return f.ID
}

// Session gives the latest session of an item.
func (s *Stage) Session(item string) model.Session {
	s.t.Helper()
	var found model.Session
	s.must(s.store.View(context.Background(), func(r store.Reader) (err error) {
		found, err = r.SessionOf(item)
		return err
	}))
	return found
}

// Latest is the place of the last record of a session.
func (s *Stage) Latest(session string) int64 {
	s.t.Helper()
	head, err := s.feed.Head(context.Background(), session)
	s.must(err)
	return head.Latest
}
