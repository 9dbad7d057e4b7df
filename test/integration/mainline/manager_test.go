package mainline

// This file runs a manager as a child process, and does to it what can happen to one.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

// manager is a manager's process, and what stays the same when it is started again: its data and its addresses.
type manager struct {
	t    *testing.T
	dir  string
	args []string
	// office, health and metrics are host:port.
	office, health, metrics string

	// cmd is nil while the manager is down; ended tells its end.
	cmd   *exec.Cmd
	ended chan error
}

// newManager makes a manager that is down. Without a namespace it watches all of them.
func newManager(t *testing.T, name, namespace string) *manager {
	m := &manager{t: t, dir: cluster.path("managers", name), office: address(t), health: address(t), metrics: address(t)}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m.args = []string{
		"--kubeconfig", cluster.managerConfig(),
		"--office-address", m.office, "--office-url", "https://" + m.office,
		"--health-address", m.health, "--metrics-address", m.metrics,
		"--data-dir", filepath.Join(m.dir, "data"),
		"--agent-image", agentImage,
		"--office-namespace", "bullpen",
		"--log-format", "text",
	}
	if namespace != "" {
		m.args = append(m.args, "--namespaces", namespace, "--office-namespace", namespace)
	}
	t.Cleanup(m.stop)
	return m
}

// start starts the manager and waits until it is ready.
func (m *manager) start() {
	m.t.Helper()
	log, err := os.OpenFile(m.logFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	// A pipe, so that a limit on the sizes of the manager's files (see limitFiles) spares its log.
	read, write, err := os.Pipe()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(cluster.managerBinary, m.args...) //nolint:gosec // our own program
	cmd.Env = append(os.Environ(), dirVariable+"="+cluster.dir)
	cmd.Stdout, cmd.Stderr = write, write
	err = spawn(cmd, syscall.SIGKILL)
	_ = write.Close()
	if err != nil {
		m.t.Fatalf("the manager does not start: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(log, read)
		ended <- cmd.Wait()
		_, _ = read.Close(), log.Close()
	}()
	m.cmd, m.ended = cmd, ended
	m.waitReady()
}

func (m *manager) waitReady() {
	m.t.Helper()
	eventually(m.t, soon, func() error {
		select {
		case err := <-m.ended:
			m.cmd = nil
			m.t.Fatalf("the manager ended: %v", orExit(err))
		default:
		}
		return m.ready()
	})
}

// ready is nil when the manager says that it is.
func (m *manager) ready() error {
	body, code, err := get(m.t.Context(), "http://"+m.health+"/readyz")
	if err != nil {
		return fmt.Errorf("the manager is not ready: %w", err)
	}
	if code != http.StatusOK {
		return fmt.Errorf("the manager is not ready: %d %s", code, body)
	}
	return nil
}

func get(ctx context.Context, url string) (body string, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, err
	}
	text, err := io.ReadAll(response.Body)
	return string(text), response.StatusCode, errors.Join(err, response.Body.Close())
}

// kill ends the manager as a crash does.
func (m *manager) kill() {
	m.t.Helper()
	if err := m.cmd.Process.Kill(); err != nil {
		m.t.Fatalf("the manager cannot be killed: %v", err)
	}
	<-m.ended
	m.cmd = nil
}

// stop ends the manager as a cluster does, and checks that it ends well. One that is down stays down.
func (m *manager) stop() {
	m.t.Helper()
	if m.cmd == nil {
		return
	}
	m.signal(syscall.SIGCONT)
	m.signal(syscall.SIGTERM)
	select {
	case err := <-m.ended:
		if err != nil {
			m.t.Errorf("the manager ended badly after SIGTERM: %v", err)
		}
	case <-time.After(30 * time.Second):
		m.t.Error("the manager did not end within 30s after SIGTERM")
		_ = m.cmd.Process.Kill()
		<-m.ended
	}
	m.cmd = nil
}

// freeze keeps the manager from doing anything while its connections stay; thaw lets it go on.
func (m *manager) freeze() { m.signal(syscall.SIGSTOP) }
func (m *manager) thaw()   { m.signal(syscall.SIGCONT) }

func (m *manager) signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Errorf("the manager cannot get %v: %v", s, err)
	}
}

// limitFiles makes every write of the manager to a file fail that would go beyond so many bytes, as on a full disk, and
// gives what undoes it.
func (m *manager) limitFiles(size uint64) (lift func()) {
	m.t.Helper()
	var old unix.Rlimit
	if err := unix.Prlimit(m.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &old); err != nil {
		m.t.Fatal(err)
	}
	set := func(limit unix.Rlimit) {
		if err := unix.Prlimit(m.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
			m.t.Fatalf("the limit of the manager's files cannot be set: %v", err)
		}
	}
	set(unix.Rlimit{Cur: size, Max: old.Max})
	return func() { set(old) }
}

// messages counts the messages of a type that this process of the manager answered with a result.
func (m *manager) messages(kind, result string) int {
	m.t.Helper()
	text, _, err := get(m.t.Context(), "http://"+m.metrics+"/metrics")
	if err != nil {
		m.t.Fatalf("the manager's metrics cannot be read: %v", err)
	}
	want := fmt.Sprintf("bullpen_office_messages_total{result=%q,type=%q} ", result, kind)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), want); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				m.t.Fatalf("a metric is no number: %v", err)
			}
			return int(n)
		}
	}
	return 0
}

// answered waits until this process of the manager answered at least n messages of a type with a result.
func (m *manager) answered(n int, kind, result string) {
	m.t.Helper()
	eventually(m.t, soon, func() error {
		if got := m.messages(kind, result); got < n {
			return fmt.Errorf("the office answered %d messages %s with %s, not %d", got, kind, result, n)
		}
		return nil
	})
}

// inStore reads the store of a manager that is down.
func (m *manager) inStore(read func(r store.Reader) error) {
	m.t.Helper()
	if m.cmd != nil {
		m.t.Fatal("stop the manager before its store is read")
	}
	opened, err := sqlite.Open(filepath.Join(m.dir, "data", "office.db"), sqlite.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	err = errors.Join(opened.View(m.t.Context(), read), opened.Close())
	if err != nil {
		m.t.Errorf("in the store: %v", err)
	}
}

// history is what the store has of an item.
type history struct {
	item    model.Item
	rounds  []model.Round
	journal []string
	usage   model.Usage
}

// history reads what the store has of an item, of a manager that is down.
func (m *manager) history(id string) history {
	m.t.Helper()
	var h history
	m.inStore(func(r store.Reader) error {
		var err error
		if h.item, err = r.Item(id); err != nil {
			return err
		}
		if h.rounds, err = r.Rounds(id); err != nil {
			return err
		}
		journal, err := r.Journal(id)
		if err != nil {
			return err
		}
		for _, entry := range journal {
			h.journal = append(h.journal, entry.Text)
		}
		models, err := r.ItemModels(id)
		for _, used := range models {
			h.usage = h.usage.Add(used.Usage)
		}
		return err
	})
	return h
}

func (m *manager) logFile() string { return filepath.Join(m.dir, "manager.log") }

// ports are those that were given out.
var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// address gives an address on loopback where nobody listens. Its port is none that the kernel gives to outgoing connections:
// while a manager is down, such a one could take it.
func address(t *testing.T) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	low := firstEphemeral()
	for range 1000 {
		port := low/2 + rand.IntN(low-low/2)
		if ports.taken[port] {
			continue
		}
		where := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := net.Listen("tcp", where)
		if err != nil {
			continue
		}
		_ = listener.Close()
		ports.taken[port] = true
		return where
	}
	t.Fatal("there is no free port")
	return ""
}

// firstEphemeral is the lowest port that the kernel gives out by itself.
func firstEphemeral() int {
	const usual = 32768
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return usual
	}
	words := bufio.NewScanner(strings.NewReader(string(text)))
	words.Split(bufio.ScanWords)
	words.Scan()
	low, err := strconv.Atoi(words.Text())
	if err != nil || low < 4096 {
		return usual
	}
	return low
}
