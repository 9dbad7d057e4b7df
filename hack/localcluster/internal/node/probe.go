package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
)

// A tally counts a probe's results in a row.
type tally struct {
	successes, failures int32
}

// A verdict is what results in a row amount to.
type verdict int

const (
	undecided verdict = iota
	healthy
	unhealthy
)

// add counts a result and returns what it amounts to.
func (t tally) add(ok bool, p *corev1.Probe) (tally, verdict) {
	if ok {
		t = tally{successes: t.successes + 1}
		if t.successes >= max(1, p.SuccessThreshold) {
			return t, healthy
		}
		return t, undecided
	}
	t = tally{failures: t.failures + 1}
	if t.failures >= max(1, p.FailureThreshold) {
		return t, unhealthy
	}
	return t, undecided
}

// probe runs the container's probes until ctx ends. It sends the kind of the probe
// for which the container has to be restarted.
func (c *container) probe(ctx context.Context, i *instance) <-chan string {
	spec := c.spec()
	failed := make(chan string, 2)
	go func() {
		if !c.awaitStartup(ctx, i, spec.StartupProbe, failed) {
			return
		}
		if spec.StartupProbe != nil {
			c.setHealth(i, func(s *corev1.ContainerStatus) {
				started := true
				s.Started, s.Ready = &started, spec.ReadinessProbe == nil
			})
		}
		c.release()
		if spec.LivenessProbe != nil {
			go c.watch(ctx, i, spec.LivenessProbe, "liveness", func(v verdict) bool {
				if v == unhealthy {
					failed <- "liveness"
				}
				return v != unhealthy
			})
		}
		if spec.ReadinessProbe != nil {
			go c.watch(ctx, i, spec.ReadinessProbe, "readiness", func(v verdict) bool {
				c.setHealth(i, func(s *corev1.ContainerStatus) { s.Ready = v == healthy })
				return true
			})
		}
	}()
	return failed
}

// awaitStartup runs the startup probe and reports whether it succeeded.
func (c *container) awaitStartup(ctx context.Context, i *instance, p *corev1.Probe, failed chan<- string) bool {
	if p == nil {
		return true
	}
	up := false
	c.watch(ctx, i, p, "startup", func(v verdict) bool {
		up = v == healthy
		if v == unhealthy {
			failed <- "startup"
		}
		return false
	})
	return up
}

// watch probes until ctx ends or decided returns false.
func (c *container) watch(ctx context.Context, i *instance, p *corev1.Probe, kind string, decided func(verdict) bool) {
	var t tally
	wait := time.Duration(p.InitialDelaySeconds) * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = time.Duration(max(1, p.PeriodSeconds)) * time.Second
		timeout, cancel := context.WithTimeout(ctx, time.Duration(max(1, p.TimeoutSeconds))*time.Second)
		err := c.check(timeout, i, &p.ProbeHandler)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.pod.event(corev1.EventTypeWarning, "Unhealthy", "%s probe of container %s failed: %s", kind, c.name, err)
		}
		var v verdict
		if t, v = t.add(err == nil, p); v != undecided && !decided(v) {
			return
		}
	}
}

// setHealth edits the status of a run unless it has ended meanwhile.
func (c *container) setHealth(i *instance, edit func(*corev1.ContainerStatus)) {
	c.mu.Lock()
	if c.current == i {
		edit(&c.status)
	}
	c.mu.Unlock()
	c.pod.touch()
}

// release lets what waits for this container go on.
func (c *container) release() {
	c.startedOnce.Do(func() { close(c.startedUp) })
}

// awaitStarted waits until the container has started and reports whether it has.
func (c *container) awaitStarted(ctx context.Context) bool {
	select {
	case <-c.startedUp:
		return true
	case <-ctx.Done():
		return false
	}
}

// check asks a container once how it is.
func (c *container) check(ctx context.Context, i *instance, handler *corev1.ProbeHandler) error {
	switch {
	case handler.Exec != nil:
		return i.quietly(ctx, handler.Exec.Command)
	case handler.HTTPGet != nil:
		return httpGet(ctx, handler.HTTPGet, c.spec())
	case handler.TCPSocket != nil:
		port, err := probe.ResolveContainerPort(handler.TCPSocket.Port, c.spec())
		if err != nil {
			return err
		}
		host := handler.TCPSocket.Host
		if host == "" {
			host = address
		}
		result, output, err := tcpprobe.DoTCPProbe(net.JoinHostPort(host, strconv.Itoa(port)), remaining(ctx))
		return resultError(result, output, err)
	}
	return errors.New("this node knows exec, httpGet and tcpSocket probes only")
}

// hook runs a lifecycle hook.
func (c *container) hook(ctx context.Context, i *instance, handler *corev1.LifecycleHandler) error {
	switch {
	case handler.Exec != nil:
		return i.quietly(ctx, handler.Exec.Command)
	case handler.HTTPGet != nil:
		return httpGet(ctx, handler.HTTPGet, c.spec())
	case handler.Sleep != nil:
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(handler.Sleep.Seconds) * time.Second):
		}
		return nil
	}
	return errors.New("this node knows exec, httpGet and sleep hooks only")
}

func httpGet(ctx context.Context, action *corev1.HTTPGetAction, spec *corev1.Container) error {
	request, err := httpprobe.NewRequestForHTTPGetAction(action, spec, address, "probe")
	if err != nil {
		return err
	}
	result, output, err := httpprobe.New(false).Probe(request.WithContext(ctx), remaining(ctx))
	return resultError(result, output, err)
}

// quietly runs a command in the container; its output goes into the error.
func (i *instance) quietly(ctx context.Context, words []string) error {
	const limit = 1024
	var output bytes.Buffer
	if err := i.exec(ctx, words, nil, &output, &output); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output.Bytes()[:min(limit, output.Len())]))
	}
	return nil
}

// remaining is the time until ctx's deadline; those without one get a minute.
func remaining(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return time.Minute
}

func resultError(result probe.Result, output string, err error) error {
	if err == nil && result == probe.Failure {
		return errors.New(output)
	}
	return err
}
