package codex

// This file is an app-server that follows a script, for what the real one cannot be brought to do.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// envScript makes this test binary an app-server: it names a file with the script.
const envScript = "BULLPEN_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if path := os.Getenv(envScript); path != "" {
		os.Exit(play(path))
	}
	os.Exit(m.Run())
}

// script says what the app-server prints when it is sent a method; of several entries of a method each is for one time, and the last one
// for all further ones. Lines that begin with ! are deeds: exit CODE, say TEXT (to standard error), wait FILE, stay (in spite of signals).
// $ID is the id of the request. Methods that a script does not have are answered with an empty result.
type script map[string][][]string

// usual is how an app-server gets to a turn; more goes before it.
func usual(turn []string, more script) script {
	s := script{
		"initialize":   {{`{"id":$ID,"result":{}}`}},
		"config/read":  {{`{"id":$ID,"result":{"config":{},"origins":{}}}`}},
		"thread/start": {{`{"id":$ID,"result":{"thread":{"id":"t1"},"model":"m1"}}`}},
		"turn/start":   {append([]string{`{"id":$ID,"result":{"turn":{"id":"u1","status":"inProgress"}}}`}, turn...)},
	}
	for method, lines := range more {
		s[method] = lines
	}
	return s
}

// completed are the last lines of a turn.
func completed(text string) []string {
	return []string{
		`{"method":"item/completed","params":{"threadId":"t1","turnId":"u1","item":{"type":"agentMessage","id":"a","text":` + strconv.Quote(text) + `}}}`,
		`{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}`,
	}
}

// play is the app-server. It writes what it is sent into a file beside the script.
func play(path string) int {
	data, err := os.ReadFile(path)
	var s script
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	heard, openErr := os.OpenFile(path+".heard", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil || openErr != nil {
		fmt.Fprintln(os.Stderr, err, openErr)
		return 99
	}
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		for _, line := range s["--version"][0] {
			fmt.Println(line)
		}
		return 0
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		fmt.Fprintf(heard, "%s\n", lines.Bytes())
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return 98
		}
		if m.Method == "" {
			m.Method = "answer"
		}
		for _, line := range s.next(m.Method) {
			if deed, ok := strings.CutPrefix(line, "!"); ok {
				if code, end := do(deed, path); end {
					return code
				}
				continue
			}
			fmt.Println(strings.ReplaceAll(line, "$ID", string(m.ID)))
		}
	}
	return 0
}

// next takes what a method's time has.
func (s script) next(method string) []string {
	times, ok := s[method]
	if !ok {
		if method == "answer" || method == "initialized" {
			return nil
		}
		return []string{`{"id":$ID,"result":{}}`}
	}
	if len(times) > 1 {
		s[method] = times[1:]
	}
	return times[0]
}

// do does a deed. It returns whether the program ends, and its exit code.
func do(deed, path string) (code int, end bool) {
	name, argument, _ := strings.Cut(deed, " ")
	switch name {
	case "exit":
		code, _ := strconv.Atoi(argument)
		return code, true
	case "say":
		fmt.Fprintln(os.Stderr, argument)
	case "wait":
		for {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), argument)); err == nil {
				return 0, false
			}
			time.Sleep(time.Millisecond)
		}
	case "stay":
		signal.Ignore(syscall.SIGTERM)
		for {
			time.Sleep(time.Second)
		}
	}
	return 0, false
}

// stage is where a round is played.
type stage struct {
	codex *Codex
	round runtime.Round
	path  string
}

func newStage(t *testing.T, s script) *stage {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	path := filepath.Join(home, "script.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	// The race detector would wait a second at the end of each app-server.
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, envScript + "=" + path, "GORACE=atexit_sleep_ms=0"}
	return &stage{
		codex: &Codex{Program: self, Env: env, Log: quiet(t), Grace: 5 * time.Second},
		round: runtime.Round{
			Offer: protocol.Offer{WorkItem: protocol.WorkItem{ID: "i1", Kind: "task", Title: "A thing to do"},
				Context: protocol.Context{Journal: []protocol.JournalEntry{{Author: "grace", Text: "Do it."}}}},
			Payload: []byte(`{}`), Number: 1, Dir: t.TempDir(), Scratch: t.TempDir(), Env: env,
			Person: protocol.TeamPerson{Handle: "ada"}, Team: protocol.TeamConfig{Name: "shop"},
		},
		path: path,
	}
}

// heard are the messages of a method that the app-server was sent; the method of an answer is "".
func (s *stage) heard(t *testing.T, method string) []string {
	t.Helper()
	data, err := os.ReadFile(s.path + ".heard")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var m struct {
			Method string `json:"method"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(line, err)
		}
		if m.Method == method {
			list = append(list, line)
		}
	}
	return list
}
