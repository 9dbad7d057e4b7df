// Command demo shows a team of agents take real work and finish it: it starts a local cluster and the manager, applies
// config/samples/demo, shows how the work goes, and checks that every item ended as the sample says.
//
// The Makefile builds what it needs and calls it; see demo and demo-down there.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// demo is where everything is.
type demo struct {
	// dir holds all that the demo makes; bin the built programs; kubernetes those of the local cluster.
	dir, bin, localcluster, kubernetes, samples string
	timeout                                     time.Duration
	// office is where the office is reached. thinker is the runtime that thinks; empty for the program of the sample.
	office, thinker string
	started         time.Time
	// api reads the cluster's objects.
	api client.Client
}

func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "cluster", "kubeconfig") }
func (d *demo) repository() string { return filepath.Join(d.dir, "greeter.git") }
func (d *demo) kubectl() string    { return filepath.Join(d.kubernetes, "kubectl") }

func main() {
	ctrllog.SetLogger(logr.Discard()) // the client has nothing to say that the demo does not
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	d := &demo{started: time.Now()}
	root := &cobra.Command{Use: "demo", Short: "Shows a team of agents at work", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().StringVar(&d.dir, "dir", ".demo", "folder that holds everything the demo makes")
	root.PersistentFlags().StringVar(&d.localcluster, "localcluster", ".cache/localcluster", "the local cluster's program")
	up := &cobra.Command{
		Use: "up", Short: "start, work, check", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return d.up(c.Context()) },
	}
	up.Flags().StringVar(&d.bin, "bin", "bin", "folder of bullpen-manager, bullpen-agent, ost, kubectl-bullpen and demo-worker")
	up.Flags().StringVar(&d.kubernetes, "kubernetes", ".cache/k8s", "folder of the Kubernetes binaries")
	up.Flags().StringVar(&d.samples, "samples", "config/samples/demo", "folder of the manifests")
	up.Flags().DurationVar(&d.timeout, "timeout", 5*time.Minute, "how long the work may take")
	down := &cobra.Command{
		Use: "down", Short: "stop everything and remove the folder", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return d.down(c.Context()) },
	}
	root.AddCommand(up, down)
	return root
}

// up runs the demo from start to check. What runs is left running, to be looked at.
func (d *demo) up(ctx context.Context) error {
	for _, path := range []*string{&d.dir, &d.bin, &d.localcluster, &d.kubernetes} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"Git repository", d.makeRepository},
		{"local cluster", d.startCluster},
		{"custom resources", d.installCRDs},
		{"manager", d.startManager},
		{"team and work", d.applySamples},
	}
	for _, step := range steps {
		begun := time.Now()
		fmt.Printf("▸ %-18s", step.what)
		if err := step.do(ctx); err != nil {
			fmt.Println("failed")
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Printf("ready in %.1f s\n", time.Since(begun).Seconds())
	}
	if err := d.connect(); err != nil {
		return err
	}
	fmt.Printf("\nThe team is at work, %.1f s after the start.\n\n", time.Since(d.started).Seconds())
	if err := d.watch(ctx); err != nil {
		return err
	}
	if err := d.logs(ctx); err != nil {
		return err
	}
	return d.report(ctx)
}
