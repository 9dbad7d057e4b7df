package controllers

// This file has what the reconcilers share: the wait for the first synchronisation, the one status write, and the one switch
// from an error to what comes next.

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconciler is what every reconciler works with.
type reconciler struct {
	// client reads from the cache; live reads from the API server.
	client client.Client
	live   client.Reader
	office Office
	// events tells users what happened, always after it succeeded.
	events events.EventRecorder
	now    func() time.Time
	// started is when the manager was.
	started time.Time
	// synced is closed once the office knows which objects exist.
	synced <-chan struct{}
	// writes remembers when each object's status was last written.
	writes *pace
}

// waitSynced blocks until the office knows which objects exist: an object that is told earlier would look deleted to it.
func (r *reconciler) waitSynced(ctx context.Context) error {
	select {
	case <-r.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeStatus writes the status of changed, which differs from that of old, if neither was changed meanwhile.
func (r *reconciler) writeStatus(ctx context.Context, old, changed client.Object) error {
	patch := client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, changed, patch); err != nil {
		return err
	}
	r.writes.wrote(keyOf(old), r.now())
	return nil
}

// Waits before the next look.
const (
	// staleWait lets the cache catch up with a write that it did not see.
	staleWait = 50 * time.Millisecond
	// mendWait is for trouble outside of what the controllers watch.
	mendWait = 30 * time.Second
)

// errStale says that the cache is behind the API server.
var errStale = errors.New("the cache is behind the API server")

// outcome turns the error of a reconcile into what comes next. after is when to look again if nothing went wrong, or if what did
// is told; 0 is never.
func outcome(err error, after time.Duration) (ctrl.Result, error) {
	var p *problem
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: after}, nil
	case errors.As(err, &p):
		return ctrl.Result{RequeueAfter: sooner(mendWait, after)}, nil
	case errors.Is(err, context.Canceled):
		return ctrl.Result{}, nil // the manager stops
	case passing(err):
		return ctrl.Result{RequeueAfter: staleWait}, nil
	default:
		return ctrl.Result{}, err
	}
}

// passing says that the next look, with a newer cache, will know better.
func passing(err error) bool {
	return errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// problem is trouble that is told in conditions instead of retried at once.
type problem struct {
	reason  string
	message string
	// stalled says that a user must mend it.
	stalled bool
}

func (p *problem) Error() string { return p.message }

// sooner is the shorter of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || (b > 0 && b < a) {
		return b
	}
	return a
}

// pace remembers when something was last done for an object, so that it is not done too often. Forgetting one too many costs
// one write.
type pace struct {
	mu   sync.Mutex
	last map[objectKey]time.Time
}

// objectKey names an object among those of all kinds.
type objectKey struct {
	kind string
	types.NamespacedName
}

func newPace() *pace { return &pace{last: make(map[objectKey]time.Time)} }

// wait is how long it takes until every has passed since the last time; 0 is now.
func (p *pace) wait(key objectKey, now time.Time, every time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.last[key]
	if !known {
		return 0
	}
	return max(0, last.Add(every).Sub(now))
}

func (p *pace) wrote(key objectKey, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[key] = now
}

func (p *pace) forget(key objectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
