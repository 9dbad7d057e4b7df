// Command manager (bullpen-manager) runs the controllers and the office in one process.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/bullpen-dev/bullpen/access"
	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/controllers"
	"github.com/bullpen-dev/bullpen/office"
)

// version is set by the linker; without that, it is the module's.
var version string

// leaderLease names the Lease by which one of several managers leads.
const leaderLease = "bullpen-manager"

// options are the flags.
type options struct {
	namespaces      []string
	officeAddress   string
	officeURL       string
	officeNamespace string
	officeCertDir   string
	dataDir         string
	agentImage      string
	metricsAddress  string
	healthAddress   string
	allowedOrigins  []string
	leaderElect     bool
	concurrency     int
	logLevel        string
	logFormat       string
}

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "bullpen-manager:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := options{}
	c := &cobra.Command{
		Use:           "bullpen-manager",
		Short:         "Runs teams of AI coding agents on Kubernetes",
		Args:          cobra.NoArgs,
		Version:       versionOf(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return run(c.Context(), o)
		},
	}
	f := c.Flags()
	f.AddGoFlag(flag.CommandLine.Lookup("kubeconfig"))
	f.StringSliceVar(&o.namespaces, "namespaces", nil, "namespaces to watch, comma-separated; without it, all")
	f.StringVar(&o.officeAddress, "office-address", ":8443", "where the office listens")
	f.StringVar(&o.officeURL, "office-url", "", "where agents reach the office (default https://bullpen-office.<office-namespace>.svc:8443)")
	f.StringVar(&o.officeNamespace, "office-namespace", ownNamespace(), "the manager's own namespace, which has the office's certificate and the leader's lease")
	f.StringVar(&o.officeCertDir, "office-cert-dir", "", "folder with tls.crt, tls.key and ca.crt for the office; without it, the operator keeps a CA of its own")
	f.StringVar(&o.dataDir, "data-dir", "/var/lib/bullpen", "folder of the office's store")
	f.StringVar(&o.agentImage, "agent-image", "", "image of agents whose team and person name none (required)")
	f.StringVar(&o.metricsAddress, "metrics-address", ":8080", "where Prometheus metrics are served; 0 serves none")
	f.StringVar(&o.healthAddress, "health-address", ":8081", "where /healthz and /readyz are served; 0 serves none")
	f.StringSliceVar(&o.allowedOrigins, "session-allowed-origins", nil, "origins, comma-separated, such as https://board.example.com, whose web pages may use sessions beside the office's own")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "wait to become the leader before doing anything")
	f.IntVar(&o.concurrency, "concurrency", 32, "how many objects of a kind are looked at side by side")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	return c
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

// ownNamespace is the pod's namespace, as the downward API or the service account tell it.
func ownNamespace() string {
	if ns := os.Getenv("POD_NAMESPACE"); ns != "" {
		return ns
	}
	if ns, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return strings.TrimSpace(string(ns))
	}
	return "bullpen"
}

// complete fills in what depends on other flags, and checks.
func (o *options) complete() error {
	if o.agentImage == "" {
		return errors.New("--agent-image is missing: name the image that agents run where neither team nor person names one")
	}
	if o.officeURL == "" {
		o.officeURL = fmt.Sprintf("https://%s.%s.svc:8443", officeService, o.officeNamespace)
	}
	u, err := url.Parse(o.officeURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("--office-url is https://host:port, not %q", o.officeURL)
	}
	for _, origin := range o.allowedOrigins {
		if !isOrigin(origin) {
			return fmt.Errorf("--session-allowed-origins are origins as browsers send them, such as https://board.example.com or http://localhost:5173, not %q", origin)
		}
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		return fmt.Errorf("--log-format is json or text, not %q", o.logFormat)
	}
	return nil
}

// isOrigin says whether a text is an origin as browsers send it.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && text == strings.ToLower(u.Scheme+"://"+u.Host)
}

// officeService is the Service in front of the office.
const officeService = "bullpen-office"

// officeNames are what the office's certificate is for: the name that agents dial, and those of the Service.
func (o *options) officeNames() []string {
	service := officeService + "." + o.officeNamespace
	names := []string{officeService, service, service + ".svc", service + ".svc.cluster.local"}
	if u, err := url.Parse(o.officeURL); err == nil {
		names = append(names, u.Hostname())
	}
	return names
}

func setupLog(o options) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level is debug, info, warn or error, not %q", o.logLevel)
	}
	handlerOptions := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(os.Stderr, handlerOptions)
	if o.logFormat == "text" {
		handler = slog.NewTextHandler(os.Stderr, handlerOptions)
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return slog.New(handler), nil
}

// run wires everything up and blocks until ctx ends.
func run(ctx context.Context, o options) (err error) {
	log, err := setupLog(o)
	if err != nil {
		return err
	}
	log.Info("The manager starts", "version", versionOf(), "officeURL", o.officeURL, "dataDir", o.dataDir)
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the Kubernetes API server (see --kubeconfig): %w", err)
	}
	mgr, err := newManager(cfg, o)
	if err != nil {
		return err
	}
	ca, getCertificate, err := officeTLS(ctx, cfg, mgr, o)
	if err != nil {
		return err
	}
	mem, err := openMemory(o.dataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mem.close()) }()
	theOffice, err := newOffice(cfg, mgr, o, log, mem, getCertificate)
	if err != nil {
		return err
	}
	err = errors.Join(
		mgr.Add(theOffice),
		publish(cfg, mgr, o, ca),
		controllers.Setup(mgr, controllers.Options{
			Office:      theOffice,
			Operator:    podspec.Operator{Image: o.agentImage, OfficeURL: o.officeURL},
			CA:          ca,
			Namespaces:  o.namespaces,
			Concurrency: o.concurrency,
		}),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("office", theOffice.Ready),
	)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newOffice makes the office, and adds to the manager what it needs: who may use sessions, and what watches their records.
func newOffice(cfg *rest.Config, mgr manager.Manager, o options, log *slog.Logger, mem *memory,
	getCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (*office.Office, error) {
	sessionAccess, err := access.New(cfg, access.Options{Logger: log.With("component", "access")})
	if err != nil {
		return nil, err
	}
	records := &feedWatch{feed: mem.feed, log: log.With("component", "feed")}
	if err := errors.Join(mgr.Add(sessionAccess), mgr.Add(records), records.register(metrics.Registry)); err != nil {
		return nil, err
	}
	return office.New(office.Options{
		Store:          mem.store,
		Feed:           mem.feed,
		Access:         sessionAccess,
		AllowedOrigins: o.allowedOrigins,
		Address:        o.officeAddress,
		TLS:            sessionAccess.TLS(&tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: getCertificate}),
		Logger:         log.With("component", "office"),
		Metrics:        metrics.Registry,
	})
}

func newManager(cfg *rest.Config, o options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	cacheOptions := cache.Options{ByObject: controllers.CacheByObject(), DefaultTransform: cache.TransformStripManagedFields()}
	if len(o.namespaces) > 0 {
		cacheOptions.DefaultNamespaces = make(map[string]cache.Config, len(o.namespaces))
		for _, ns := range o.namespaces {
			cacheOptions.DefaultNamespaces[ns] = cache.Config{}
		}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaderLease,
		LeaderElectionNamespace:       o.officeNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, nil
}

// officeTLS gives the office's certificate, ready to be served.
func officeTLS(ctx context.Context, cfg *rest.Config, mgr manager.Manager, o options) (controllers.CASource, func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	if o.officeCertDir != "" {
		given, err := controllers.NewGivenTLS(o.officeCertDir)
		if err != nil {
			return nil, nil, err
		}
		return given, given.GetCertificate, mgr.Add(given)
	}
	direct, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	own := controllers.NewOfficeTLS(direct, o.officeNamespace, o.officeNames(), time.Now)
	if err := own.EnsureSoon(ctx); err != nil {
		return nil, nil, err
	}
	return own, own.GetCertificate, mgr.Add(own)
}
