// Command localcluster runs a Kubernetes cluster on a machine that has nothing
// but Go: no root, no container engine, no network but loopback.
//
//	localcluster build --bin .cache/k8s
//	localcluster up --detach --bin .cache/k8s --state .cache/cluster
//	kubectl --kubeconfig .cache/cluster/kubeconfig get nodes
//	localcluster down --state .cache/cluster
//
// The control plane is the real one: etcd, kube-apiserver, kube-scheduler and
// the controllers of kube-controller-manager that matter for pods, volumes and
// workloads, built from their Go modules. The node is not: it runs the
// containers of a pod as processes of this machine. See package node for what
// that means, and docs/localcluster.md for the user's page.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/binaries"
	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/cluster"
	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/node"
	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/process"
)

// moduleFiles pin the versions of what `build` builds. With them in the program
// it works from any folder.
//
//go:embed go.mod go.sum
var moduleFiles embed.FS

// keeperCommand is run by localcluster itself, see process.Keeper.
const keeperCommand = "keeper"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends the program at once; its keeper cleans up then.
	context.AfterFunc(ctx, stop)
	root := &cobra.Command{
		Use:           "localcluster",
		Short:         "A Kubernetes cluster of local processes, for development and tests",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(buildCommand(), upCommand(), downCommand(), keeper())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "localcluster:", err)
		os.Exit(1)
	}
}

func buildCommand() *cobra.Command {
	options := binaries.Options{Module: moduleFiles, Out: os.Stdout, Assets: os.Getenv("KUBEBUILDER_ASSETS")}
	cmd := &cobra.Command{
		Use:   "build --bin DIR",
		Short: "Build the programs of the control plane that are missing in a folder",
		Long: "Build etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl as far as they are\n" +
			"missing in a folder. With KUBEBUILDER_ASSETS set, etcd, kube-apiserver and kubectl are taken from there.\n" +
			"A kubectl in PATH is used unless --kubectl asks for a new one.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return binaries.Ensure(cmd.Context(), options)
		},
	}
	cmd.Flags().StringVar(&options.Dir, "bin", "", "folder of the programs")
	cmd.Flags().BoolVar(&options.BuildKubectl, "kubectl", false, "build kubectl even if there is one in PATH")
	require(cmd, "bin")
	return cmd
}

// upFlags are the flags of `up` that are not options as they stand.
type upFlags struct {
	images, args []string
	detach       bool
}

func upCommand() *cobra.Command {
	options := cluster.Options{Out: os.Stdout, Keeper: []string{keeperCommand}}
	var flags upFlags
	cmd := &cobra.Command{
		Use:   "up --bin DIR --state DIR",
		Short: "Start a cluster and serve it until SIGINT or SIGTERM",
		Long: "Start a cluster, print \"ready\" and the path of its kubeconfig, and serve it until SIGINT or SIGTERM.\n" +
			"The state folder starts empty every time. The exit code is 0 if a signal ended the cluster.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.fill(&options); err != nil {
				return err
			}
			if flags.detach {
				args := slices.DeleteFunc(slices.Clone(os.Args[1:]), isDetach)
				return cluster.Detach(cmd.Context(), options.State, args, os.Stdout)
			}
			return cluster.Run(cmd.Context(), options)
		},
	}
	f := cmd.Flags()
	f.StringVar(&options.Bin, "bin", "", "folder of the programs, filled by build")
	f.StringVar(&options.State, "state", "", "folder for everything the cluster writes")
	f.BoolVar(&flags.detach, "detach", false, "serve in the background; return when ready")
	f.BoolVar(&options.ControlPlaneOnly, "control-plane-only", false, "etcd and the API server only: no controllers, no scheduler, no node")
	f.StringArrayVar(&flags.images, "image", nil, "REF=DIR: the image REF is the folder DIR; a REF without a tag stands for all of them (repeat)")
	f.StringArrayVar(&flags.args, "arg", nil, "PROGRAM=ARGUMENT: one more argument for etcd, kube-apiserver, kube-controller-manager or kube-scheduler (repeat)")
	f.StringArrayVar(&options.Node.PassEnv, "pass-env", nil, "name of a variable of this environment that containers get too (repeat)")
	f.IntVar(&options.Node.PodCapacity, "node-capacity-pods", 110, "how many pods fit on the node")
	f.DurationVar(&options.Node.Backoff.Initial, "restart-backoff", 2*time.Second, "wait before the second restart of a container; doubles each time (a kubelet waits 10s)")
	f.DurationVar(&options.Node.Backoff.Max, "restart-backoff-max", 30*time.Second, "longest wait before a restart (a kubelet waits 5m)")
	require(cmd, "bin", "state")
	return cmd
}

// fill checks the flags and puts them into the options.
func (f upFlags) fill(o *cluster.Options) error {
	if o.ControlPlaneOnly && len(f.images) > 0 {
		return errors.New("--image has no meaning with --control-plane-only: there is no node")
	}
	var err error
	if o.Node.Images, err = node.ParseImages(f.images); err != nil {
		return err
	}
	o.Args = map[string][]string{}
	for _, arg := range f.args {
		program, argument, found := strings.Cut(arg, "=")
		if !found || argument == "" {
			return fmt.Errorf("--arg %q is not PROGRAM=ARGUMENT", arg)
		}
		o.Args[program] = append(o.Args[program], argument)
	}
	return nil
}

func isDetach(arg string) bool {
	return arg == "--detach" || strings.HasPrefix(arg, "--detach=")
}

func downCommand() *cobra.Command {
	var state string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "down --state DIR",
		Short: "Stop a cluster and remove its state folder",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cluster.Down(state, timeout)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "state folder of the cluster")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long pods may take to stop before all is killed")
	require(cmd, "state")
	return cmd
}

// keeper runs beside a cluster, see process.Keeper.
func keeper() *cobra.Command {
	return &cobra.Command{
		Use:    keeperCommand + " MARKER",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return process.Keep(os.Stdin, args[0])
		},
	}
}

func require(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // The flag is not defined.
		}
	}
}
