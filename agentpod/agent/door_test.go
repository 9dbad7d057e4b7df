package agent

// These tests are about the socket itself: where it is, who can open it, and what it bears.

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/ost"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// shortDir is a folder whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestOnlyTheAgentsUserCanOpenTheSocket(t *testing.T) {
	root := shortDir(t)
	d, err := openDoor(root, root, http.NotFoundHandler(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for path, want := range map[string]os.FileMode{d.path: 0o600, filepath.Dir(d.path): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestASocketThatAKilledAgentLeftIsReplaced(t *testing.T) {
	root := shortDir(t)
	place := socketPlaces(root, root)[0]
	if err := os.Mkdir(filepath.Dir(place), 0o755); err != nil {
		t.Fatal(err)
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: place, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	_ = left.Close()
	d, err := openDoor(root, root, http.NotFoundHandler(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	conn, err := net.Dial("unix", place)
	if err != nil {
		t.Fatalf("nobody listens: %v", err)
	}
	_ = conn.Close()
}

func TestWhereTheHomeCannotHaveASocketItIsInTheTemporaryFolder(t *testing.T) {
	for name, home := range map[string]func(tmp string) string{
		"a path that is too long": func(tmp string) string { return filepath.Join(tmp, strings.Repeat("x", 100)) },
		"a file in its place": func(tmp string) string {
			root := filepath.Join(tmp, "home")
			if err := os.MkdirAll(root, 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "run"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return root
		},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := shortDir(t)
			root := home(tmp)
			d, err := openDoor(root, tmp, http.NotFoundHandler(), quiet)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(d.path, filepath.Join(tmp, "bullpen-")) {
				t.Errorf("it is at %s", d.path)
			}
			d.close()
			if left, _ := filepath.Glob(filepath.Join(tmp, "bullpen-*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

func TestASocketsFolderThatIsALinkToElsewhereIsNotUsed(t *testing.T) {
	tmp := shortDir(t)
	root := filepath.Join(tmp, strings.Repeat("x", 100))
	place := socketPlaces(root, tmp)[0]
	if err := os.Symlink(t.TempDir(), filepath.Dir(place)); err != nil {
		t.Fatal(err)
	}
	if _, err := openDoor(root, tmp, http.NotFoundHandler(), quiet); err == nil || !strings.Contains(err.Error(), "is not a folder of this user") {
		t.Errorf("opened: %v", err)
	}
}

func TestAnAgentWithoutASocketWorksAndSaysWhatToDo(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `env > env; echo finished`)
	p.tmp = filepath.Join(p.home, strings.Repeat("x", 100))
	p.home = filepath.Join(p.home, strings.Repeat("y", 100))
	if err := os.MkdirAll(p.home, 0o750); err != nil {
		t.Fatal(err)
	}
	p.env[contract.EnvHome], p.env[contract.EnvTmp] = p.home, p.tmp
	p.env[contract.EnvSocket] = "/the/socket/of/another" // as in an agent that another one's program starts
	p.start()
	office := o.welcome()
	report := expect[protocol.DoctorReport](office).message
	var found protocol.DoctorCheck
	for _, c := range report.Checks {
		if c.Name == "Socket opens" {
			found = c
		}
	}
	if found.Status != protocol.CheckFail || !strings.Contains(found.Detail, "may have 107 bytes") || !strings.Contains(found.Fix, "TMPDIR") {
		t.Errorf("the doctor says %+v", found)
	}
	office.accepted("i")
	expect[protocol.Handback](office)
	if env := content(p.file("i", "env")); strings.Contains(env, contract.EnvSocket+"=") {
		t.Error("programs are told of a socket that is not there")
	}
}

func TestTooManyRequestsAtOnceAreRefusedAndTheRestIsServed(t *testing.T) {
	hold, entered := make(chan struct{}), make(chan struct{}, maxPrograms)
	root := shortDir(t)
	d, err := openDoor(root, root, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-hold
		write(w, queued)
	}), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	run := func() ran {
		env := map[string]string{contract.EnvSocket: d.path, contract.EnvItemID: "i"}
		var out, errOut strings.Builder
		exit := ost.Main(t.Context(), []string{"answer", "x"}, ost.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut},
			func(name string) string { return env[name] }, "test")
		return ran{exit, out.String(), errOut.String()}
	}
	var served sync.WaitGroup
	results := make(chan ran, maxPrograms)
	for range maxPrograms {
		served.Go(func() { results <- run() })
	}
	for range maxPrograms {
		select {
		case <-entered:
		case <-time.After(patience):
			t.Fatal("not all that may be served at once are")
		}
	}
	if r := run(); r.exit != ost.ExitAway || !strings.Contains(r.errOut, "32 requests are under way") {
		t.Errorf("one more: %+v", r)
	}
	close(hold)
	served.Wait()
	close(results)
	for r := range results {
		if r.exit != ost.ExitOK {
			t.Errorf("one of those that were served: %+v", r)
		}
	}
}

func TestProgramEnv(t *testing.T) {
	env := programEnv([]string{"A=1", "PATH=/bin", "B=2"}, "/s", "/n", "/opt/bullpen")
	if got, want := strings.Join(env, " "), "A=1 B=2 PATH=/opt/bullpen:/bin BULLPEN_SOCKET=/s BULLPEN_NOTES_FILE=/n"; got != want {
		t.Errorf("got %s", got)
	}
	env = programEnv([]string{"PATH=/bin"}, "", "/n", "")
	if got, want := strings.Join(env, " "), "PATH=/bin BULLPEN_NOTES_FILE=/n"; got != want {
		t.Errorf("without a socket and without ost: %s", got)
	}
	if env = programEnv(nil, "", "/n", "/opt"); !strings.HasPrefix(env[0], "PATH=/opt:/usr/local/sbin:") {
		t.Errorf("without a PATH: %s", env)
	}
}
