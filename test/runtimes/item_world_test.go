package runtimes

// This file is the world of the tests that drive a whole work item: a real office on a real store, told of a team as controllers would, a
// repository that wants a password, and the built agent as a process of its own, which runs the real Claude Code or Codex.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

const (
	itemID    = "3f0d6a52-item"
	itemTitle = "Paint the shed"
	itemBody  = "Please paint it, and say what you did."
	// agentToken and gitPassword are credentials of the person, made up.
	agentToken  = "token-of-ada-0123456789"
	gitPassword = "correct-horse-battery-42"
)

var (
	theTeam   = model.TeamKey{Namespace: "demo", Name: "shop"}
	thePerson = model.PersonKey{Team: theTeam, Handle: "ada"}
)

// kit is what differs between the runtimes.
type kit struct {
	// name is the runtime's, model what the person is configured with.
	name, model string
	// source and format are those of its records.
	source, format string
	// setUp gives the variables with which the runtime asks the stand-in, and writes its configuration into the home.
	setUp func(t *testing.T, model *modelstub.Server, home string) []string
	// command is a call of the runtime's tool for commands.
	command func(t *testing.T, command string) modelstub.ToolCall
	// cut is what counts of the usage of an answer that was cut short.
	cut func(modelstub.Usage) modelstub.Usage
	// microUSD is what usage costs; 0 where nobody knows a price.
	microUSD func(modelstub.Usage) float64
	// conversations is the folder below the home in which the runtime keeps its conversations.
	conversations string
	// limit is an answer that refuses because of a limit that resets at a time.
	limit func(resets time.Time) modelstub.Step
	// said and thought are the texts of an answer and of thinking that a completed record has; empty for other records.
	said, thought func(payload []byte) string
}

// programs are the agent and ost, built once.
var programs struct {
	once sync.Once
	dir  string
	err  error
}

// agentProgram builds the agent, with ost beside it, and gives its path.
func agentProgram(t *testing.T) string {
	t.Helper()
	programs.once.Do(func() {
		if programs.dir, programs.err = os.MkdirTemp("", "bullpen-programs-"); programs.err != nil {
			return
		}
		for name, source := range map[string]string{"bullpen-agent": "agent", contract.CLIName: "ost"} {
			build := exec.Command("go", "build", "-o", filepath.Join(programs.dir, name), "../../cmd/"+source)
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				programs.err = fmt.Errorf("%s cannot be built: %w\n%s", name, err, out)
				return
			}
		}
	})
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return filepath.Join(programs.dir, "bullpen-agent")
}

// world is one office with one team, its person ada, and the repository that they work on.
type world struct {
	t      *testing.T
	kit    kit
	model  *modelstub.Server
	office *office.Office
	store  store.Store
	feed   store.Feed
	// folder has the office's files.
	folder string
	url    string
	client *http.Client
	ada    model.Person
	// remote is the bare repository.
	remote string
	// home and tmp are the pod's volumes; secrets is where the person's secrets are mounted.
	home, tmp, secrets string
	env                []string
	// agent is the process that runs now, nil where none does. agentLogs has what all of them wrote.
	agent     *exec.Cmd
	agentLogs logs
	officeLog logs
}

// everybody may do everything.
type everybody struct{}

func (everybody) Authenticate(*http.Request) (office.User, error) {
	return office.User{Name: "grace"}, nil
}

func (everybody) Allowed(context.Context, office.User, office.Deed) (bool, string, error) {
	return true, "", nil
}

// newWorld opens the office, and has the model play a script. No agent runs yet.
func newWorld(t *testing.T, k kit, steps ...modelstub.Step) *world {
	t.Helper()
	dir := t.TempDir()
	tmp, err := os.MkdirTemp("", "bp") // short, for the path of the agent's socket
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(tmp)) })
	w := &world{
		t: t, kit: k, model: play(t, steps...), folder: filepath.Join(dir, "office"), home: filepath.Join(dir, "home"), tmp: tmp,
		secrets: filepath.Join(dir, "secrets"), client: &http.Client{Timeout: patience},
	}
	for _, folder := range []string{w.folder, w.home, w.secrets} {
		must(t, os.MkdirAll(folder, 0o700))
	}
	url := w.openRemote(dir)
	w.openOffice()
	w.declare(url)
	token := filepath.Join(dir, "token")
	write(t, token, agentToken+"\n")
	credentials := filepath.Join(dir, "credentials")
	write(t, filepath.Join(credentials, "shed", "username"), "ada")
	write(t, filepath.Join(credentials, "shed", "password"), gitPassword)
	w.env = append([]string{
		contract.EnvHome + "=" + w.home, contract.EnvOfficeURL + "=" + w.url, contract.EnvNamespace + "=" + theTeam.Namespace,
		contract.EnvTeam + "=" + theTeam.Name, contract.EnvPerson + "=" + thePerson.Handle, contract.EnvTokenFile + "=" + token,
		contract.EnvRuntime + "=" + k.name, contract.EnvTmp + "=" + tmp, contract.EnvLog + "=text",
		contract.EnvGitCredentials + "=" + credentials, contract.EnvSecretFiles + "=" + w.secrets + ":" + credentials,
		"PATH=" + filepath.Dir(program(t, k.name)) + ":" + os.Getenv("PATH"),
	}, k.setUp(t, w.model, w.home)...)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// git runs git as somebody elsewhere does.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(w.home), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Bo",
		"GIT_AUTHOR_EMAIL=bo@example.com", "GIT_COMMITTER_NAME=Bo", "GIT_COMMITTER_EMAIL=bo@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// openRemote serves a repository with a commit, to those who know the password, and gives its URL. The host's name is one whose pages the
// agent knows, and leads to this machine.
func (w *world) openRemote(dir string) string {
	w.t.Helper()
	root := filepath.Join(dir, "remote")
	w.remote = filepath.Join(root, "garden", "shed.git")
	w.git(dir, "init", "-q", "--bare", "--initial-branch=main", w.remote)
	w.git(w.remote, "config", "http.receivepack", "true")
	other := filepath.Join(dir, "other")
	w.git(dir, "clone", "-q", w.remote, other)
	write(w.t, filepath.Join(other, "README"), "a shed\n")
	w.git(other, "add", "README")
	w.git(other, "commit", "-q", "-m", "Begin")
	w.git(other, "push", "-q", "origin", "HEAD:main")
	backend := &cgi.Handler{
		Path: filepath.Join(w.git(dir, "--exec-path"), "git-http-backend"), Root: "/", Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + dir, "REMOTE_USER=ada"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != gitPassword {
			rw.Header().Set("WWW-Authenticate", `Basic realm="garden"`)
			http.Error(rw, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must(w.t, err)
	return "http://gitea.localhost:" + port + "/garden/shed.git"
}

// openOffice serves an office on a new store, without TLS.
func (w *world) openOffice() {
	w.t.Helper()
	path := filepath.Join(w.folder, "office.db")
	st, err := sqlite.Open(path, sqlite.Options{})
	must(w.t, err)
	records, err := sqlite.OpenFeed(path+".feed", sqlite.FeedOptions{Store: st.ID()})
	must(w.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(w.t, err)
	o, err := office.New(office.Options{
		Store: st, Feed: records, Access: everybody{}, Listener: listener, ConfigSettle: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&w.officeLog, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Start(ctx) }()
	go func() { // what controllers do
		for {
			select {
			case <-o.Changes():
			case <-ctx.Done():
				return
			}
		}
	}()
	w.t.Cleanup(func() {
		w.endAgent()
		w.explain()
		cancel()
		must(w.t, errors.Join(<-done, records.Close(), st.Close()))
	})
	<-o.Listening()
	w.office, w.store, w.feed, w.url = o, st, records, "http://"+listener.Addr().String()
}

// declare tells the office of the team and of ada, as their controllers do.
func (w *world) declare(repository string) {
	w.t.Helper()
	team := model.Team{
		UID: "team-1", NamespaceUID: "namespace-1", Key: theTeam, Policy: dispatch.DefaultPolicy(), Config: protocol.DefaultTeamConfig(),
		Usage: model.UsagePolicy{PauseAt: 0.95, Budgets: []model.Budget{{Scope: model.BudgetItem, CostMicroUSD: 5_000_000}}},
	}
	team.Policy.BackoffInitial, team.Policy.BackoffMax = 10*time.Millisecond, 50*time.Millisecond
	team.Config.Name, team.Config.DisplayName = theTeam.Name, "The shop"
	team.Config.Roles = []protocol.TeamRole{{Name: "dev", Title: "Developer", Instructions: "Write short commits."}}
	team.Config.Repositories = []protocol.TeamRepository{{Name: "shed", URL: repository, DefaultBranch: "main", Credentials: "shed"}}
	must(w.t, w.office.SyncTeam(w.t.Context(), team))
	w.ada = model.Person{
		UID: "person-1", Name: "ada", Key: thePerson, DisplayName: "Ada", Role: "dev", Runtime: w.kit.name, Model: w.kit.model,
		TokenHash: sha256.Sum256([]byte(agentToken)), CreatedAt: time.Unix(1_700_000_000, 0).UTC(),
	}
	w.reincarnate()
}

// reincarnate tells the office of another run of the agent's container.
func (w *world) reincarnate() {
	w.t.Helper()
	w.ada.IncarnationAt = time.Now().UTC()
	w.ada.Incarnation = "run at " + w.ada.IncarnationAt.String()
	must(w.t, w.office.SyncPerson(w.t.Context(), w.ada))
}

// ask makes the work item.
func (w *world) ask() {
	w.t.Helper()
	_, err := w.office.SyncItem(w.t.Context(), model.ItemFacts{
		ID: itemID, Namespace: theTeam.Namespace, Name: "shed", CreatedAt: time.Now().UTC().Truncate(time.Second),
		Spec: model.ItemSpec{
			Generation: 1, Hash: "hash", Team: theTeam.Name, Person: thePerson.Handle, Kind: "task", Title: itemTitle, Body: itemBody,
			Requester: "grace", Priority: 100, Trigger: protocol.TriggerHuman,
		},
	})
	must(w.t, err)
}

// startAgent begins a life of the agent in the home.
func (w *world) startAgent() {
	w.t.Helper()
	cmd := exec.Command(agentProgram(w.t))
	cmd.Env, cmd.Stderr, cmd.Stdout = w.env, &w.agentLogs, &w.agentLogs
	must(w.t, cmd.Start())
	w.agent = cmd
}

// soon is how long what an agent leaves behind may take to end by itself.
const soon = 5 * time.Second

// terminate does what the kubelet does first, and waits for the end.
func (w *world) terminate() {
	w.t.Helper()
	must(w.t, w.agent.Process.Signal(syscall.SIGTERM))
	late := time.AfterFunc(patience, func() { _ = w.agent.Process.Kill() })
	err := w.agent.Wait()
	w.agent = nil
	if !late.Stop() || err != nil {
		w.t.Fatalf("the agent did not end in order after SIGTERM: %v", err)
	}
	// What the agent killed, or a check that had just begun, takes a moment to be gone.
	var left []int
	for deadline := time.Now().Add(soon); ; time.Sleep(20 * time.Millisecond) {
		if left = processesIn(w.t, w.home); len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(left) > 0 {
		w.t.Errorf("processes are left: %v", left)
	}
}

// kill ends the agent without a word. What it runs stays.
func (w *world) kill() {
	w.t.Helper()
	must(w.t, w.agent.Process.Kill())
	_ = w.agent.Wait() // it was killed
	w.agent = nil
}

// endAgent ends what runs in the home, at the end of a test.
func (w *world) endAgent() {
	if w.agent != nil && !w.t.Failed() {
		w.terminate()
	}
	if w.agent != nil {
		w.kill()
	}
	for _, pid := range processesIn(w.t, w.home) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// item, session and journal read the store.
func (w *world) item() (it model.Item) {
	w.t.Helper()
	must(w.t, w.store.View(context.Background(), func(r store.Reader) (err error) {
		it, err = r.Item(itemID)
		return err
	}))
	return it
}

func (w *world) session() (s model.Session) {
	w.t.Helper()
	must(w.t, w.store.View(context.Background(), func(r store.Reader) (err error) {
		s, err = r.SessionOf(itemID)
		return err
	}))
	return s
}

func (w *world) journal() (texts []string) {
	w.t.Helper()
	must(w.t, w.store.View(context.Background(), func(r store.Reader) error {
		entries, err := r.Journal(itemID)
		for _, e := range entries {
			texts = append(texts, e.Author+": "+e.Text)
		}
		return err
	}))
	return texts
}

// until waits for something that only the store shows.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// reached waits until the model's answer stands at a gate.
func (w *world) reached(gate *modelstub.Gate) {
	w.t.Helper()
	select {
	case <-gate.Reached():
	case <-time.After(patience):
		w.t.Fatal("the model was not asked for the answer that waits")
	}
}

// http sends a request about the session as grace, and gives the body of the answer, which has to have a status.
func (w *world) http(status int, method, path string, body any) []byte {
	w.t.Helper()
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		must(w.t, err)
		content = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+"/v1/sessions/"+w.session().ID+path, content)
	must(w.t, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := w.client.Do(r)
	must(w.t, err)
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	must(w.t, err)
	if answer.StatusCode != status {
		w.t.Fatalf("%s %s was answered with %d: %s", method, path, answer.StatusCode, data)
	}
	return data
}

// explain shows what happened, where a test failed.
func (w *world) explain() {
	if !w.t.Failed() {
		return
	}
	w.t.Logf("the office's log:\n%s", tail(w.officeLog.String(), 12_000))
	w.t.Logf("the agent's log:\n%s", tail(w.agentLogs.String(), 12_000))
	w.t.Logf("the item: %+v", w.item())
	w.t.Logf("the session: %+v", w.session())
	w.t.Logf("the journal: %q", w.journal())
	w.t.Logf("the model answered %d requests", len(w.model.Answered()))
	w.t.Logf("the feed:\n%s", outline(w.records()))
}

func tail(text string, most int) string { return text[max(0, len(text)-most):] }

// logs can be read while they are written.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// used adds up usage.
func used(all ...modelstub.Usage) (sum modelstub.Usage) {
	for _, u := range all {
		sum.Input += u.Input
		sum.CacheRead += u.CacheRead
		sum.CacheCreation += u.CacheCreation
		sum.Output += u.Output
	}
	return sum
}
