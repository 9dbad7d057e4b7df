// Package office is the server that people's agents connect to: it takes the facts that controllers tell, keeps them and all that
// happens in the store, and hands each agent one round of work at a time.
//
// Data flows one way. A fact or a message becomes one transaction of the store (change.go), which ends by deciding, with package
// dispatch, what the people it touched do next. Only when it is durable do answers and offers leave, connections drop, and
// controllers hear which views changed. The office never calls a controller.
package office

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"

	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// Options are what an office is made of.
type Options struct {
	// Store is the office's memory. The office does not close it.
	Store store.Store
	// Feed has the records of sessions. The office does not close it. Without it, no session is kept, and the session endpoints say so.
	Feed store.Feed
	// Access says who may use sessions; nil refuses everybody.
	Access Access
	// AllowedOrigins are the origins, such as https://board.example.com, whose pages may use sessions beside the office's own.
	AllowedOrigins []string
	// Streams bound the streams of sessions.
	Streams StreamOptions
	// Address to listen on, such as :8443. Listener, if set, is used instead.
	Address  string
	Listener net.Listener
	// TLS is the server's TLS configuration; nil serves without TLS, which is for tests and benchmarks only.
	TLS *tls.Config
	// Logger takes what happens; nil drops it.
	Logger *slog.Logger
	// Metrics registers the office's metrics; nil keeps them to itself.
	Metrics prometheus.Registerer
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// ConfigSettle is how long a changed team config is left to change further before idle agents are told; 0 is 2 s.
	ConfigSettle time.Duration
}

// Office is the server and what it knows of who is connected. It implements the controllers' view of an office.
type Office struct {
	store    store.Store
	opts     Options
	log      *slog.Logger
	now      func() time.Time
	metrics  *metrics
	hub      *hub.Hub[model.PersonKey, *peer]
	configs  *configs
	presence presence
	live     live
	// emits brings the office's own records into the feeds; uploads are the agents that upload theirs.
	emits   *emits
	uploads *uploads
	// turns has effects leave in the order of the commits.
	turns turns
	// due has the people to look at again though nothing happened: a backoff, a timeout, a pause that ends.
	due workqueue.TypedRateLimitingInterface[model.PersonKey]
	// stale has the teams whose config changed.
	stale workqueue.TypedDelayingInterface[model.TeamKey]
	// changed merges changes of views until the controllers take them.
	changed workqueue.TypedInterface[model.Change]
	changes chan model.Change
	// lifetime ends with the office; what outlives the request that began it ends with it.
	lifetime    context.Context
	endLifetime context.CancelFunc
	listening   chan struct{}
	once        sync.Once
	addr        net.Addr
}

// New makes an office that serves once Start is called.
func New(opts Options) (*Office, error) {
	if opts.Store == nil {
		return nil, errors.New("office: Options.Store is missing")
	}
	o := &Office{
		store:     opts.Store,
		opts:      opts,
		log:       opts.Logger,
		now:       opts.Now,
		metrics:   newMetrics(),
		hub:       hub.New[model.PersonKey, *peer](),
		configs:   newConfigs(opts.Store),
		due:       workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[model.PersonKey](100*time.Millisecond, 10*time.Second)),
		stale:     workqueue.NewTypedDelayingQueue[model.TeamKey](),
		changed:   workqueue.NewTyped[model.Change](),
		changes:   make(chan model.Change),
		listening: make(chan struct{}),
	}
	o.lifetime, o.endLifetime = context.WithCancel(context.Background())
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.opts.ConfigSettle == 0 {
		o.opts.ConfigSettle = 2 * time.Second
	}
	o.presence.init(o.now())
	o.emits, o.uploads = newEmits(o), newUploads()
	if opts.Metrics != nil {
		if err := o.metrics.register(opts.Metrics, o.hub.Len); err != nil {
			return nil, fmt.Errorf("office: metrics: %w", err)
		}
	}
	return o, nil
}

// NeedLeaderElection says that one office runs at a time.
func (o *Office) NeedLeaderElection() bool { return true }

// Start serves until ctx ends, then lets connections go within a few seconds.
func (o *Office) Start(ctx context.Context) error {
	listener := o.opts.Listener
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", o.opts.Address); err != nil {
			return fmt.Errorf("office: cannot listen on %s (is another process using the port?): %w", o.opts.Address, err)
		}
	}
	o.addr = listener.Addr()
	listener = newGate(listener)
	if o.opts.TLS != nil {
		listener = tls.NewListener(listener, o.opts.TLS)
	}
	server := &http.Server{
		Handler: o.routes(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ConnContext: withEntering,
		ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelDebug),
	}
	if err := errors.Join(o.wakeEverybody(ctx), o.announceUnborn(ctx)); err != nil {
		return fmt.Errorf("office: cannot read the store: %w", err)
	}
	o.once.Do(func() { close(o.listening) })
	o.log.Info("The office is open", "address", o.addr.String(), "tls", o.opts.TLS != nil, "store", o.store.ID())

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("office: %w", err)
		}
		return nil
	})
	group.Go(func() error { o.sweep(ctx); return nil })
	if o.opts.Feed != nil {
		group.Go(func() error { o.emits.run(ctx); return nil })
		group.Go(func() error { o.runRetention(ctx); return nil })
	}
	for range 4 {
		group.Go(func() error { o.runDue(ctx); return nil })
	}
	group.Go(func() error { o.runStale(ctx); return nil })
	group.Go(func() error { o.deliverChanges(ctx); return nil })
	group.Go(func() error {
		<-ctx.Done()
		o.endLifetime()
		o.due.ShutDown()
		o.stale.ShutDown()
		o.changed.ShutDown()
		return o.shutdown(server)
	})
	return group.Wait()
}

// shutdown closes the listener and asks every agent to reconnect, to the office that comes next.
func (o *Office) shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	o.live.drained(ctx)
	for _, p := range o.hub.All() {
		p.conn.Close(hub.CodeDropped, "the office restarts: reconnect")
	}
	for o.hub.Len() > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("office: shutdown: %w", err)
	}
	return nil
}

// Listening is closed once the office takes connections; Addr is then its address.
func (o *Office) Listening() <-chan struct{} { return o.listening }

// Addr is where the office listens, once it does.
func (o *Office) Addr() net.Addr { return o.addr }

// Ready is nil when the office serves and its store can be written; the message says what is wrong.
func (o *Office) Ready(_ *http.Request) error {
	select {
	case <-o.listening:
	default:
		return errors.New("the office does not listen yet")
	}
	if err := o.store.Healthy(); err != nil {
		return fmt.Errorf("the store cannot be written: %w", err)
	}
	return nil
}

// life is short for the store's id: what makes the ids of one life of the store differ from those of another.
func (o *Office) life() string { return shortLife(o.store.ID()) }

func shortLife(storeID string) string { return storeID[:min(len(storeID), 8)] }

// StoreID identifies the store's life.
func (o *Office) StoreID() string { return o.store.ID() }

// Changes delivers objects whose view changed, repeats merged.
func (o *Office) Changes() <-chan model.Change { return o.changes }

func (o *Office) deliverChanges(ctx context.Context) {
	for {
		change, shutdown := o.changed.Get()
		if shutdown {
			return
		}
		o.changed.Done(change)
		select {
		case o.changes <- change:
		case <-ctx.Done():
			return
		}
	}
}

// wakeEverybody puts everybody on the due list, so that what waited in an earlier life of the office goes on.
func (o *Office) wakeEverybody(ctx context.Context) error {
	return o.store.View(ctx, func(r store.Reader) error {
		people, err := r.AllPeople()
		for _, p := range people {
			o.due.Add(p.Key)
		}
		return err
	})
}

// runDue looks at people whose time has come.
func (o *Office) runDue(ctx context.Context) {
	for {
		key, shutdown := o.due.Get()
		if shutdown {
			return
		}
		err := o.change(ctx, func(w *work) error { w.touchPerson(key); return nil })
		o.due.Done(key)
		if err != nil {
			o.log.Error("A person could not be looked at; it is tried again", "person", key.String(), "error", err)
			o.due.AddRateLimited(key)
			continue
		}
		o.due.Forget(key)
	}
}

// runStale makes agents of a team hear of its changed config.
func (o *Office) runStale(ctx context.Context) {
	for {
		key, shutdown := o.stale.Get()
		if shutdown {
			return
		}
		if config, err := o.configs.get(ctx, key); err == nil {
			for _, p := range o.hub.All() {
				if p.key.Team == key && p.config != config.sum {
					o.due.Add(p.key)
				}
			}
		}
		o.stale.Done(key)
	}
}

// sweep keeps connections alive and cuts those of agents that work without showing life.
func (o *Office) sweep(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		o.hub.Each(func(p *peer) {
			p.conn.PingIfDue(now)
			if p.hung(now) && p.conn.Close(hub.CodeDropped, "no heartbeat while working: reconnect") {
				o.log.Warn("An agent works without a heartbeat; its connection is cut", "person", p.key.String())
			}
		})
	}
}
