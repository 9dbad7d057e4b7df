// Command bench measures Bullpen on the machine it runs on and writes the figures, beside the design's aims, into a page.
//
//	go run ./test/bench --out docs/benchmarks.md
//	go run ./test/bench --only memory
//
// It needs what `make localcluster` builds: etcd, kube-apiserver, and the program that runs them. Everything listens on loopback and
// writes below a temporary folder, which is removed at the end.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// benchmark is one thing to measure.
type benchmark struct {
	name    string
	title   string
	measure func(ctx context.Context, s *session) (result, error)
}

// benchmarks are in the order of the page. The page's template has a text for each.
var benchmarks = []benchmark{
	{"commits", "Durable commits", measureCommits},
	{"uploads", "Records of agents", measureRecords},
	{"watchers", "A thousand watchers", measureWatchers},
	{"resume", "A watcher far behind", measureResume},
	{"offer", "From apply to offer", measureOffer},
	{"life", "Items through their whole life", measureLife},
	{"memory", "Memory of an idle connection", measureMemory},
	{"heartbeats", "Heartbeats", measureHeartbeats},
	{"storm", "A storm of connections", measureStorm},
	{"recall", "Recall", measureRecall},
	{"feed-appends", "Session records", measureFeedAppends},
	{"feed-large", "Ten million session records", measureFeedLarge},
}

// session is what the benchmarks of one call share.
type session struct {
	out io.Writer
	// dir is a folder for whatever a benchmark writes, root the repository's.
	dir, root string
	// localcluster is the program that runs a control plane, kubernetes the folder of its programs.
	localcluster, kubernetes string
	// profiles is a folder for profiles; empty for none.
	profiles string
	quick    bool
	names    int
	// past is the path of a store that measureRecall has filled, for its later runs; empty until then.
	past string
	// large is the path of a feed that measureFeedLarge has filled, and largeRuns how often it has run.
	large     string
	largeRuns int
}

// scale gives full, or in a quick session small.
func (s *session) scale(full, small int) int {
	if s.quick {
		return small
	}
	return full
}

// period gives full, or in a quick session a moment.
func (s *session) period(full time.Duration) time.Duration {
	if s.quick {
		return full / 20
	}
	return full
}

// unique gives a number that no other file of the session has in its name.
func (s *session) unique() int {
	s.names++
	return s.names
}

func (s *session) progress(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, "  "+format+"\n", args...)
}

func main() {
	if settings := os.Getenv(officeEnv); settings != "" {
		exit(beOffice(settings))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // controller-runtime's clients and installer say nothing that matters here
	exit(command().ExecuteContext(ctx))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are the flags.
type options struct {
	page, only, profiles string
	runs                 int
	quick                bool
}

func command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:           "bench",
		Short:         "Measures Bullpen on this machine",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return bench(c.Context(), o, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&o.page, "out", "", "page to write; it needs all benchmarks")
	c.Flags().StringVar(&o.only, "only", "", "the one benchmark to run: "+strings.Join(names(), ", "))
	c.Flags().StringVar(&o.profiles, "profiles", "", "folder to write profiles of the office's memory into")
	c.Flags().IntVar(&o.runs, "runs", 3, "how often each benchmark runs; figures are the medians")
	c.Flags().BoolVar(&o.quick, "quick", false, "run everything small, to see whether it works: the figures mean nothing")
	return c
}

func names() []string {
	var all []string
	for _, b := range benchmarks {
		all = append(all, b.name)
	}
	return all
}

func bench(ctx context.Context, o options, out io.Writer) (err error) {
	chosen, err := choose(o)
	if err != nil {
		return err
	}
	s, err := newSession(o, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	p := page{Machine: describe(s.root), Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Runs: o.runs, Quick: o.quick}
	for _, b := range chosen {
		section, err := measure(ctx, s, b, o.runs)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		p.Sections = append(p.Sections, section)
	}
	if o.page == "" {
		return nil
	}
	var text bytes.Buffer
	if err := p.write(&text); err != nil {
		return err
	}
	return os.WriteFile(o.page, text.Bytes(), 0o644) //nolint:gosec // a page of the documentation is for everybody
}

func choose(o options) ([]benchmark, error) {
	if o.runs < 1 {
		return nil, errors.New("--runs is at least 1")
	}
	if o.only == "" {
		return benchmarks, nil
	}
	if o.page != "" {
		return nil, errors.New("--out needs all benchmarks: leave --only away")
	}
	at := slices.Index(names(), o.only)
	if at < 0 {
		return nil, fmt.Errorf("there is no benchmark %q; there are %s", o.only, strings.Join(names(), ", "))
	}
	return benchmarks[at : at+1], nil
}

func newSession(o options, out io.Writer) (*session, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	// The paths of unix sockets are short, so the folder's is, too.
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	return &session{
		out: out, dir: dir, root: root, profiles: o.profiles, quick: o.quick,
		localcluster: pathFrom("LOCALCLUSTER", filepath.Join(root, ".cache", "localcluster")),
		kubernetes:   pathFrom("LOCALCLUSTER_BIN", filepath.Join(root, ".cache", "k8s")),
	}, nil
}

func pathFrom(env, other string) string {
	if path := os.Getenv(env); path != "" {
		return path
	}
	return other
}

// moduleRoot is the folder of the nearest go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("there is no go.mod above %s: run it from within the repository", dir)
		}
	}
}

// measure runs a benchmark some times, and tells what came out.
func measure(ctx context.Context, s *session, b benchmark, runs int) (section, error) {
	sec := section{Name: b.name, Title: b.title}
	var results []result
	for n := range runs {
		load := loadAverage()
		_, _ = fmt.Fprintf(s.out, "%s, run %d of %d (load average %s)\n", b.name, n+1, runs, load)
		r, err := b.measure(ctx, s)
		if err != nil {
			return sec, err
		}
		for _, f := range r.figures {
			s.progress("%s: %s %s", f.name, withUnit(f.value, f.unit), f.verdict())
		}
		for _, d := range r.spreads {
			s.progress("%s: p50 %s, p99 %s", d.name, withUnit(d.p50, d.unit), withUnit(d.p99, d.unit))
		}
		sec.Loads = append(sec.Loads, load)
		results = append(results, r)
	}
	sec.fill(results)
	return sec, nil
}
