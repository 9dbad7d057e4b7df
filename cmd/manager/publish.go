package main

// This file publishes how people reach the office, for those who may read it: the office's URL and the CA of its certificate, neither of which
// is a secret.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/controllers"
)

// +kubebuilder:rbac:groups="",namespace=bullpen,resources=configmaps,verbs=get;create;patch

const (
	// publicName is the ConfigMap in the manager's namespace.
	publicName = "bullpen-office"
	// publicURL and publicCA are what it has: the URL that agents dial, whose host the certificate is for, and the CA bundle, PEM.
	publicURL = "url"
	publicCA  = "ca.crt"
	// publishLook is how often it is looked at whether the CA changed, publishAgain how often the ConfigMap is read in case somebody changed it.
	publishLook  = 10 * time.Second
	publishAgain = 10 * time.Minute
)

// publisher keeps the ConfigMap. It is a Runnable of the leader.
type publisher struct {
	client    client.Client
	namespace string
	url       string
	ca        controllers.CASource

	published map[string]string
	looked    time.Time
}

// publish adds what keeps the ConfigMap to the manager.
func publish(cfg *rest.Config, mgr manager.Manager, o options, ca controllers.CASource) error {
	direct, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return mgr.Add(&publisher{client: direct, namespace: o.officeNamespace, url: o.officeURL, ca: ca})
}

// Start keeps the ConfigMap until ctx ends. That it cannot be kept ends nothing: only people who use it miss it.
func (p *publisher) Start(ctx context.Context) error {
	ticker := time.NewTicker(publishLook)
	defer ticker.Stop()
	for told := ""; ; {
		err := p.publish(ctx, time.Now())
		if err != nil && ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			log.FromContext(ctx).Error(err, "How to reach the office could not be published; it is tried again", "configMap", p.namespace+"/"+publicName)
		}
		if err == nil {
			told = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// errNotOurs says that somebody else has the name.
var errNotOurs = errors.New("it was not made by the operator: rename it")

// publish makes the ConfigMap what it should be, where that is not known to be so already.
func (p *publisher) publish(ctx context.Context, now time.Time) error {
	bundle, err := p.ca.CABundle()
	if err != nil {
		return err
	}
	data := map[string]string{publicURL: p.url, publicCA: string(bundle)}
	if maps.Equal(data, p.published) && now.Sub(p.looked) < publishAgain {
		return nil
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: publicName,
		Labels: map[string]string{api.LabelManagedBy: api.LabelManagedByValue, api.LabelComponent: "office"},
	}}
	found := &corev1.ConfigMap{}
	switch err := p.client.Get(ctx, client.ObjectKeyFromObject(object), found); {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		object.Data = data
		err = p.client.Create(ctx, object)
		if err != nil {
			return err
		}
	case found.Labels[api.LabelManagedBy] != api.LabelManagedByValue:
		return fmt.Errorf("the ConfigMap %s/%s has the name that the office's is to have, but %w", p.namespace, publicName, errNotOurs)
	case !maps.Equal(found.Data, data):
		old := found.DeepCopy()
		found.Data = data
		if err := p.client.Patch(ctx, found, client.MergeFrom(old)); err != nil {
			return err
		}
	}
	p.published, p.looked = data, now
	return nil
}
