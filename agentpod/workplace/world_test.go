package workplace

// This file is the world of the tests: a home with its place, remotes that are real repositories, and a reporter that remembers.

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// TestMain makes this test binary what git runs: the agent's program, or an ssh.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "ssh":
		os.Exit(playSSH(os.Args[1:]))
	case os.Getenv(envKilled) != "":
		os.Exit(prepareToBeKilled())
	case len(os.Args) > 1 && os.Args[1] == CommandCredential:
		os.Exit(Credential(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	case len(os.Args) > 1 && os.Args[1] == CommandSSH:
		os.Exit(SSH(os.Args[2:], os.Stderr))
	}
	code := m.Run()
	if template.dir != "" {
		_ = os.RemoveAll(template.dir)
	}
	os.Exit(code)
}

// world is a home and what it can reach.
type world struct {
	t     *testing.T
	dir   string
	place *Place
	team  protocol.TeamConfig
	hooks protocol.TeamHooks
	env   []string
	// prepared are the items in whose folders after_checkout ran.
	prepared map[string]bool
	told     *recorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, prepared: map[string]bool{}, team: protocol.TeamConfig{
		Name: "web", People: []protocol.TeamPerson{{Handle: "ada", Name: "Ada Lovelace", Runtime: "command"}},
	}}
	w.place = &Place{
		Helper: self, Namespace: "demo", Person: "ada", Grace: time.Second, pauses: []time.Duration{},
		Credentials: filepath.Join(dir, "credentials"), Log: discard(),
		// The machine of the tests may change while they run.
		system: func(string, string) []string { return []string{"system"} },
	}
	w.moveHome("home")
	return w
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// moveHome has the home in another folder, where it was moved, or is new.
func (w *world) moveHome(name string) {
	w.t.Helper()
	home := filepath.Join(w.dir, name)
	if w.place.Root != "" {
		if err := os.Rename(filepath.Dir(w.place.Root), home); err != nil {
			w.t.Fatal(err)
		}
	}
	w.place.Root = filepath.Join(home, ".bullpen")
	w.place.Items = filepath.Join(w.place.Root, "items")
	for _, folder := range []string{"items", "state/run"} {
		if err := os.MkdirAll(filepath.Join(w.place.Root, folder), 0o750); err != nil {
			w.t.Fatal(err)
		}
	}
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, contract.EnvPerson + "=ada"}
}

// repository adds a repository to the team.
func (w *world) repository(name, url string, change ...func(*protocol.TeamRepository)) {
	r := protocol.TeamRepository{Name: name, URL: url}
	for _, c := range change {
		c(&r)
	}
	w.team.Repositories = append(w.team.Repositories, r)
}

// round is a round of an item, whose folder is there.
func (w *world) round(item string) runtime.Round {
	w.t.Helper()
	round := runtime.Round{
		Offer: protocol.Offer{WorkItem: protocol.WorkItem{ID: item, Kind: "ticket", Title: "Make it " + item}},
		Dir:   filepath.Join(w.place.Items, item), Scratch: filepath.Join(w.place.Root, "scratch", item),
		ProcessRecord: filepath.Join(w.place.Root, "state/run", item), Env: slices.Clone(w.env), Team: w.team,
	}
	if err := os.MkdirAll(round.Dir, 0o750); err != nil {
		w.t.Fatal(err)
	}
	return round
}

// try prepares a round of an item.
func (w *world) try(ctx context.Context, item string) (runtime.Round, error) {
	w.t.Helper()
	w.told = &recorder{}
	return w.place.Prepare(ctx, Order{
		Round: w.round(item), Hooks: w.hooks,
		Prepared: w.prepared[item], OnPrepared: func() { w.prepared[item] = true },
	}, w.told)
}

// prepare prepares a round of an item, which has to go well.
func (w *world) prepare(item string) runtime.Round {
	w.t.Helper()
	round, err := w.try(w.t.Context(), item)
	if err != nil {
		w.t.Fatalf("the place of %s: %v\n%s", item, err, w.told.text())
	}
	return round
}

// inspect asks git about a round's place, and the remotes too.
func (w *world) inspect(round runtime.Round) Facts {
	return w.place.Inspect(w.t.Context(), round, true)
}

// git runs git as a program of a round does.
func (w *world) git(round runtime.Round, dir string, args ...string) string {
	w.t.Helper()
	return gitIn(w.t, round.Env, dir, args...)
}

// commit commits a file in a checkout, as a program does.
func (w *world) commit(round runtime.Round, n int, file, text string) {
	w.t.Helper()
	dir := round.Worktrees[n].Dir
	write(w.t, filepath.Join(dir, file), text)
	w.git(round, dir, "add", "--", file)
	w.git(round, dir, "commit", "-q", "-m", "Write "+file)
}

func gitIn(t *testing.T, env []string, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s in %s: %v\n%s", strings.Join(args, " "), dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

// host is a repository somewhere else, and a clone of it that others work in.
type host struct {
	t          *testing.T
	dir, other string
	env        []string
}

// hostEnv is the environment of those who work elsewhere.
func hostEnv(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Bo", "GIT_AUTHOR_EMAIL=bo@example.com", "GIT_COMMITTER_NAME=Bo", "GIT_COMMITTER_EMAIL=bo@example.com",
	}
}

func hostIn(t *testing.T, dir string) *host {
	return &host{t: t, dir: filepath.Join(dir, "shop.git"), other: filepath.Join(dir, "other"), env: hostEnv(dir)}
}

// newHost makes an empty repository whose HEAD is a branch.
func newHost(t *testing.T, branch string) *host {
	t.Helper()
	h := hostIn(t, t.TempDir())
	h.begin(branch)
	return h
}

func (h *host) begin(branch string) {
	h.t.Helper()
	dir := filepath.Dir(h.dir)
	gitIn(h.t, h.env, dir, "init", "-q", "--bare", "--template=", "--initial-branch="+branch, h.dir)
	gitIn(h.t, h.env, h.dir, "config", "http.receivepack", "true")
	gitIn(h.t, h.env, dir, "clone", "-q", "--template=", h.dir, h.other)
	gitIn(h.t, h.env, h.other, "remote", "set-url", "origin", "../shop.git")
}

// template is what fullHost copies.
var template struct {
	once sync.Once
	dir  string
}

// fullHost has a branch main with a file.
func fullHost(t *testing.T) *host {
	t.Helper()
	template.once.Do(func() {
		template.dir = must(os.MkdirTemp("", "bullpen-host-"))
		h := hostIn(t, template.dir)
		h.begin("main")
		h.push("main", "README", "hello\n")
	})
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(template.dir)); err != nil {
		t.Fatal(err)
	}
	return hostIn(t, dir)
}

// git runs git in the other clone.
func (h *host) git(args ...string) string {
	h.t.Helper()
	return gitIn(h.t, h.env, h.other, args...)
}

// push commits a file on a branch, and pushes it. It returns the commit.
func (h *host) push(branch, file, text string) string {
	h.t.Helper()
	h.git("fetch", "-q", "--prune")
	if h.git("branch", "-r", "--list", "origin/"+branch) != "" {
		h.git("checkout", "-q", "-B", branch, "origin/"+branch)
	} else {
		h.git("checkout", "-q", "-B", branch)
	}
	write(h.t, filepath.Join(h.other, file), text)
	h.git("add", "--", file)
	h.git("commit", "-q", "-m", "Change "+file)
	h.git("push", "-q", "origin", branch)
	return h.git("rev-parse", "HEAD")
}

// at is where a branch of the repository is; empty if there is none.
func (h *host) at(branch string) string {
	h.t.Helper()
	return gitIn(h.t, h.env, h.dir, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// content reads a file; empty if there is none.
func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// recorder is a Reporter that remembers.
type recorder struct {
	mu sync.Mutex
	// phases are lines such as "clone shop started", details what was said with those that ended, by the same line.
	phases  []string
	details map[string]map[string]any
	chunks  []chunk
	ready   []string
}

// chunk is a piece of output.
type chunk struct {
	phase, step, stream string
	lines               []string
	at                  time.Time
}

func (r *recorder) Phase(phase, status, step string, took time.Duration, detail map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := phase + " " + step + " " + status
	if status == feed.PhaseStarted && took != 0 {
		line += " late"
	}
	r.phases = append(r.phases, line)
	if r.details == nil {
		r.details = map[string]map[string]any{}
	}
	r.details[line] = detail
}

func (r *recorder) Output(phase, step, stream string, lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chunks = append(r.chunks, chunk{phase, step, stream, slices.Clone(lines), time.Now()})
}

func (r *recorder) Ready(repositories []string, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = append(r.ready, strings.Join(repositories, " "))
}

// lines are those of a step.
func (r *recorder) lines(step string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, c := range r.chunks {
		if c.step == step {
			lines = append(lines, c.lines...)
		}
	}
	return lines
}

// text is all that was told.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(r.phases, "\n") + "\n"
	for _, c := range r.chunks {
		text += fmt.Sprintf("%s %s %s: %s\n", c.phase, c.step, c.stream, strings.Join(c.lines, " | "))
	}
	return text
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}
