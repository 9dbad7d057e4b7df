package main

// This file is an office in a process of its own, so that its memory can be told from that of the clients: the program starts itself
// again, and gives orders through a pipe.

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/pki"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

const (
	// officeEnv has the settings, in JSON, of a process that is to be an office.
	officeEnv = "BULLPEN_BENCH_OFFICE"
	// teamSize is how many people a team has.
	teamSize = 50
	// beatEvery is the heartbeat of these teams.
	beatEvery = 5 * time.Second
)

// officeSettings say what kind of an office a process is. One on the folder and the address of an earlier one goes on from there.
type officeSettings struct {
	Dir     string
	TLS     bool
	People  int
	Address string
}

// opened is the first line of an office.
type opened struct{ Address, CA string }

// reading is what an office knows of itself.
type reading struct {
	Resident int64
	// Peak is the most that was resident since forget.
	Peak       int64
	Goroutines int
	Processor  time.Duration
}

// officeProcess is the other end of an office.
type officeProcess struct {
	settings officeSettings
	url      string
	tls      *tls.Config
	cmd      *exec.Cmd
	orders   io.WriteCloser
	answers  *bufio.Reader
}

// startOffice starts this program as an office, and waits until it is open.
func startOffice(ctx context.Context, settings officeSettings) (*officeProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	p := &officeProcess{settings: settings, cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), officeEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	answers, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(answers)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	var first opened
	if err := p.hear(&first); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.url = "http://" + first.Address
	if settings.TLS {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(first.CA))
		p.url, p.tls = "https://"+first.Address, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	}
	return p, nil
}

func (p *officeProcess) hear(into any) error {
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the office's process ended: %w", err)
	}
	return json.Unmarshal(line, into)
}

// read asks for a reading; with collect, after all garbage is collected and given back to the system.
func (p *officeProcess) read(collect bool) (reading, error) {
	order := "read"
	if collect {
		order = "collect"
	}
	var r reading
	_, err := fmt.Fprintln(p.orders, order)
	return r, errors.Join(err, p.hear(&r))
}

// forget begins a new peak.
func (p *officeProcess) forget() error {
	var done bool
	_, err := fmt.Fprintln(p.orders, "forget")
	return errors.Join(err, p.hear(&done))
}

// crash ends the office without a chance to say goodbye, and gives one that takes its place.
func (p *officeProcess) crash(ctx context.Context) (*officeProcess, error) {
	if err := p.cmd.Process.Kill(); err != nil {
		return nil, err
	}
	_ = p.cmd.Wait() // how it ended is known
	_ = p.orders.Close()
	settings := p.settings
	settings.Address = strings.TrimPrefix(strings.TrimPrefix(p.url, "https://"), "http://")
	return startOffice(ctx, settings)
}

// profile has the office write its heap to a file.
func (p *officeProcess) profile(path string) error {
	var done bool
	_, err := fmt.Fprintln(p.orders, "profile "+path)
	return errors.Join(err, p.hear(&done))
}

// stop lets the office close.
func (p *officeProcess) stop() error {
	return errors.Join(p.orders.Close(), p.cmd.Wait())
}

// who gives the n-th person's team and handle.
func who(n int) (team, handle string) {
	return fmt.Sprintf("team-%d", n/teamSize), fmt.Sprintf("person-%d", n%teamSize)
}

// connect connects the n-th person.
func (p *officeProcess) connect(ctx context.Context, n int) (*agent, error) {
	team, handle := who(n)
	return connect(ctx, agentURL(p.url, "bench", team), p.tls, handle, "token-"+handle)
}

// beOffice is the life of an office process: it opens, obeys, and ends with its orders.
func beOffice(text string) error {
	var settings officeSettings
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(settings.Dir, "office.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmp.Or(settings.Address, "127.0.0.1:0"))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	config, ca, err := serverTLS(settings.TLS, settings.Dir)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	o, err := office.New(office.Options{Store: store, Listener: listener, TLS: config})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Start(ctx) }()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-o.Changes():
			}
		}
	}()
	if settings.Address == "" {
		err = populate(ctx, o, settings.People)
	}
	if err == nil {
		<-o.Listening()
		err = obey(opened{Address: listener.Addr().String(), CA: ca})
	}
	cancel()
	return errors.Join(err, <-ended, store.Close())
}

// serverTLS makes a certificate as the operator makes its own, or takes the one that an earlier office made in the folder.
func serverTLS(wanted bool, dir string) (config *tls.Config, ca string, err error) {
	if !wanted {
		return nil, "", nil
	}
	files := map[string][]byte{}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			files[name] = data
		}
	}
	if len(files) == 0 {
		if files, _, _, err = pki.Plan(nil, []string{"127.0.0.1"}, time.Now()); err != nil {
			return nil, "", err
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				return nil, "", err
			}
		}
	}
	pair, err := tls.X509KeyPair(files["tls.crt"], files["tls.key"])
	if err != nil {
		return nil, "", err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}, string(files["ca.crt"]), nil
}

// populate tells the office its teams and people.
func populate(ctx context.Context, o *office.Office, people int) error {
	for n := range people {
		name, handle := who(n)
		key := model.TeamKey{Namespace: "bench", Name: name}
		if n%teamSize == 0 {
			team := model.Team{UID: "uid-" + name, Key: key, Policy: dispatch.DefaultPolicy(), Config: protocol.DefaultTeamConfig()}
			team.Config.Name, team.Policy.Heartbeat = name, beatEvery
			if err := o.SyncTeam(ctx, team); err != nil {
				return err
			}
		}
		err := o.SyncPerson(ctx, model.Person{
			UID: "uid-" + name + "-" + handle, Name: name + "-" + handle, Key: model.PersonKey{Team: key, Handle: handle}, DisplayName: handle,
			Runtime: "command", TokenHash: sha256.Sum256([]byte("token-" + handle)), CreatedAt: time.Unix(1, 0).UTC(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// obey answers orders until there are no more.
func obey(first opened) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(first); err != nil {
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		order, path, _ := strings.Cut(orders.Text(), " ")
		var answer any = true
		var err error
		switch order {
		case "collect":
			debug.FreeOSMemory()
			debug.FreeOSMemory() // the second time frees what pools kept over the first
			answer, err = readSelf()
		case "read":
			answer, err = readSelf()
		case "forget":
			err = forgetPeak()
		case "profile":
			err = writeHeap(path)
		}
		if err := errors.Join(err, out.Encode(answer)); err != nil {
			return err
		}
	}
	return orders.Err()
}

func readSelf() (r reading, err error) {
	var noRoom, noPeak, noTime error
	r.Resident, noRoom = resident()
	r.Peak, noPeak = peak()
	r.Processor, noTime = processorTime(os.Getpid())
	r.Goroutines = runtime.NumGoroutine()
	return r, errors.Join(noRoom, noPeak, noTime)
}

func writeHeap(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return pprof.Lookup("heap").WriteTo(file, 0)
}
