// Command kubectl-bullpen is a plugin of kubectl: kubectl bullpen shows what a team does, in which order work runs, what it used, and what
// is wrong; and it shows what an agent does for an item, speaks to it and stops it. For the former it reads objects only, so whoever may read
// them may use it; for the latter it reaches the office through a port-forward, as the user of the kubeconfig.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// version is set by the linker; without that, it is the module's.
var version string

// Exit codes.
const (
	exitOK = iota
	// exitFailed: doctor found a check that fails.
	exitFailed
	// exitError: the command could not do what it was asked for.
	exitError
	// exitInterrupted: the user ended the command, as shells tell of it.
	exitInterrupted = 130
)

// errFailed says that what was asked for is shown, and is not well.
var errFailed = errors.New("checks failed")

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := &cli{in: os.Stdin, out: os.Stdout, errOut: os.Stderr, now: time.Now, zone: time.Local, patience: patience}
	c.connect, c.config = c.dial, c.restConfig
	c.terminal = func() (int, int) { return terminalOf(c.out) }
	code := c.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// cli is what every command works with.
type cli struct {
	in     io.Reader
	out    io.Writer
	errOut io.Writer
	now    func() time.Time
	// connect gives a client, and the namespace that is looked at where none is named.
	connect func() (client.Client, string, error)
	// config gives what the kubeconfig says of the cluster and the user.
	config func() (*rest.Config, error)
	// terminal gives the size of the output, where that is a terminal.
	terminal func() (width, height int)
	// zone is that in which times are shown.
	zone *time.Location
	// patience is how long an item's session may be missing.
	patience time.Duration

	kubeconfig    string
	overrides     clientcmd.ConfigOverrides
	allNamespaces bool
	output        string
}

// run runs one command line and gives its exit code.
func (c *cli) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetOut(c.out)
	root.SetErr(c.errOut)
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return exitOK
	case errors.Is(err, errFailed):
		return exitFailed
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	default:
		_, _ = fmt.Fprintf(c.errOut, "error: %s\n", explain(err))
		var more *hintError
		if errors.As(err, &more) {
			_, _ = fmt.Fprintf(c.errOut, "\n%s\n", more.hint)
		}
		return exitError
	}
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "kubectl-bullpen",
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl bullpen"},
		Short:             "Shows what teams of AI coding agents do",
		Version:           versionOf(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "path to the kubeconfig file")
	flags.BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "look into all namespaces")
	clientcmd.BindOverrideFlags(&c.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	root.AddCommand(c.status(), c.queue(), c.usage(), c.doctor(), c.logs(), c.say(), c.stop())
	return root
}

func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// patience is how long an item's session may be missing: the office hears of an item when the manager has looked at it.
const patience = 10 * time.Second

// clientConfig reads the kubeconfig as kubectl does, with the flags.
func (c *cli) clientConfig() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
}

// restConfig is what the kubeconfig says of the cluster and the user.
func (c *cli) restConfig() (*rest.Config, error) {
	config, err := c.clientConfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (see --kubeconfig and --context): %w", err)
	}
	return config, nil
}

// dial makes a client as kubectl does, from the kubeconfig and the flags.
func (c *cli) dial() (client.Client, string, error) {
	namespace, _, err := c.clientConfig().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := c.restConfig()
	if err != nil {
		return nil, "", err
	}
	k, err := client.New(config, client.Options{Scheme: newScheme()})
	return k, namespace, err
}

// newScheme knows the kinds that the plugin reads.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(api.AddToScheme(scheme), corev1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme)))
	return scheme
}

// load reads what there is. It says so where that is nothing.
func (c *cli) load(ctx context.Context) (*world, error) {
	k, namespace, err := c.connect()
	if err != nil {
		return nil, err
	}
	if c.allNamespaces {
		namespace = ""
	}
	w := &world{namespace: namespace}
	for _, list := range []client.ObjectList{&w.teams, &w.people, &w.items} {
		if err := k.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	w.sort()
	if len(w.teams.Items)+len(w.people.Items)+len(w.items.Items) == 0 {
		where := "in namespace " + namespace + "; -A looks into all"
		if namespace == "" {
			where = "in this cluster"
		}
		_, _ = fmt.Fprintf(c.errOut, "There are no teams, people or work items %s.\n", where)
	}
	return w, nil
}

// outputs adds the flag -o with what a command can print beside its usual form.
func (c *cli) outputs(cmd *cobra.Command, forms ...string) {
	cmd.Flags().StringVarP(&c.output, "output", "o", "", "another form of output: "+strings.Join(forms, " or "))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if c.output != "" && !slices.Contains(forms, c.output) {
			return fmt.Errorf("-o is %s, not %q", strings.Join(forms, " or "), c.output)
		}
		return nil
	}
}

// wide says whether the columns for -o wide are wanted.
func (c *cli) wide() bool { return c.output == "wide" }
