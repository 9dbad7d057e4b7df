package main

// This file finds the session of an item, for the commands that use one.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// onSession is what a command about a session works with.
type onSession struct {
	cluster
	office *office
	// item is the item's name, session its latest session.
	item    string
	session *feed.Session
}

// withSession finds the session of the item of that name, and runs do with it.
func (c *cli) withSession(ctx context.Context, f officeFlags, item string, do func(s *onSession) error) (err error) {
	if c.allNamespaces {
		return errors.New("an item is in one namespace: name it with -n instead of -A")
	}
	k, err := c.connectSessions()
	if err != nil {
		return err
	}
	o, err := c.reach(ctx, k, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	s := &onSession{cluster: k, office: o, item: item}
	if s.session, err = s.find(ctx, c.patience); err != nil {
		return err
	}
	return do(s)
}

// connectSessions connects to the API server for a command about a session.
func (c *cli) connectSessions() (cluster, error) {
	k, namespace, err := c.connect()
	if err != nil {
		return cluster{}, err
	}
	config, err := c.config()
	return cluster{client: k, config: config, namespace: namespace}, err
}

// find finds the latest session of the item. One that was just made is known to the office a moment later.
func (s *onSession) find(ctx context.Context, patience time.Duration) (*feed.Session, error) {
	it := &api.WorkItem{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.item}, it)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		// It may be gone by now, or only its sessions may be read: the office knows both by name.
		return s.findByName(ctx, err)
	case err != nil:
		return nil, err
	}
	id := cmp.Or(it.Annotations[api.AnnotationItemID], string(it.UID))
	for deadline := time.Now().Add(patience); ; {
		found, err := s.office.Session(ctx, id)
		switch {
		case err == nil:
			return found, nil
		case !noSession(err):
			return nil, err
		case !s.may(ctx, "get", "session", s.item):
			return nil, forbidden("get", "session", s.namespace)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("the office has no session of the work item %s/%s: see whether the manager watches that namespace, and "+
				"whether the item's team exists: kubectl --namespace %s describe workitem %s", s.namespace, s.item, s.namespace, s.item)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(200*time.Millisecond, patience)):
		}
	}
}

// noSession says that the office has no session of an item, or none that the user may read.
func noSession(err error) bool {
	var p *sessions.Problem
	return errors.As(err, &p) && p.Status == http.StatusNotFound && p.Type != ""
}

// findByName asks the office for an item that the API server does not show, for the reason why.
func (s *onSession) findByName(ctx context.Context, why error) (*feed.Session, error) {
	found, err := s.office.OfItem(ctx, s.namespace, s.item)
	switch {
	case sessions.IsStatus(err, http.StatusForbidden):
		if apierrors.IsForbidden(why) {
			return nil, forbidden("get", "session", s.namespace)
		}
		return nil, fmt.Errorf("there is no work item %s in namespace %s: kubectl --namespace %s get workitems lists those that there are",
			s.item, s.namespace, s.namespace)
	case err != nil:
		return nil, err
	case len(found) == 0 && apierrors.IsForbidden(why):
		return nil, forbidden("get", "session", s.namespace)
	case len(found) == 0:
		return nil, fmt.Errorf("there is no work item %s in namespace %s, and no session of one: kubectl --namespace %s get workitems lists "+
			"those that there are", s.item, s.namespace, s.namespace)
	}
	return &found[0], nil
}

// say is kubectl bullpen say.
func (c *cli) say() *cobra.Command {
	var f officeFlags
	closes := false
	cmd := &cobra.Command{
		Use:   "say ITEM TEXT...",
		Short: "Say something to who works on an item",
		Long: "Say something to who works on an item. It is answered in a turn of its own, once what runs has ended.\n\n" +
			"The words after ITEM are the text; with - it is read from the standard input.",
		Example: "  kubectl bullpen say fix-login The tests fail on Windows too, please look there.\n" +
			"  kubectl bullpen say fix-login - < review.md",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := c.textOf(args[1:])
			if err != nil {
				return err
			}
			return c.withSession(cmd.Context(), f, args[0], func(s *onSession) error {
				m, err := s.office.Say(cmd.Context(), s.session.ID, text, closes)
				if err != nil {
					return s.refused(cmd.Context(), "message", err)
				}
				return c.said(s, m)
			})
		},
	}
	cmd.Flags().BoolVar(&closes, "close", false, "close the session after the answer: no further message is taken")
	f.add(cmd)
	c.outputs(cmd, "json")
	return cmd
}

// said confirms a message.
func (c *cli) said(s *onSession, m *feed.InboxMessage) error {
	if c.output == "json" {
		return printJSON(c.out, m)
	}
	_, err := fmt.Fprintf(c.out, "The message waits for the next turn of %s/%s. kubectl bullpen logs -f %s shows the answer.\n", s.namespace, s.item, s.item)
	return err
}

// stop is kubectl bullpen stop.
func (c *cli) stop() *cobra.Command {
	var f officeFlags
	cmd := &cobra.Command{
		Use:   "stop ITEM",
		Short: "Stop the turn of an item that runs",
		Long: "Stop the turn of an item that runs. The item waits until somebody says something to it; spec.cancel of the item ends it for\n" +
			"good.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSession(cmd.Context(), f, args[0], func(s *onSession) error {
				if err := s.office.Stop(cmd.Context(), s.session.ID); err != nil {
					return s.refused(cmd.Context(), "stop", err)
				}
				_, err := fmt.Fprintf(c.out, "%s/%s is being stopped.\n", s.namespace, s.item)
				return err
			})
		},
	}
	f.add(cmd)
	return cmd
}

// refused adds to a refusal which right is missing, where that is why.
func (s *onSession) refused(ctx context.Context, subresource string, err error) error {
	if sessions.IsStatus(err, http.StatusForbidden) && !s.may(ctx, "create", subresource, s.item) {
		return forbidden("create", subresource, s.namespace)
	}
	return err
}
