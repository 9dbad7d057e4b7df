package main

// This file reaches the office from a user's machine: through a port-forward to the manager's pod, or at a URL.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/tunnel"
)

// What the manager publishes in its namespace, under one name: a Service in front of the office, and a ConfigMap with its URL and CA.
const (
	officeName = "bullpen-office"
	officeURL  = "url"
	officeCA   = "ca.crt"
)

// officeFlags say where the office is.
type officeFlags struct{ namespace, url, ca string }

func (f *officeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.namespace, "office-namespace", "bullpen", "the manager's namespace")
	cmd.Flags().StringVar(&f.url, "office-url", "", "the office's URL, where it can be reached without a port-forward")
	cmd.Flags().StringVar(&f.ca, "office-ca", "", "file with the CA of the office's certificate; without it, the manager's ConfigMap has it")
}

// cluster is the API server as the commands about sessions use it.
type cluster struct {
	client    client.Client
	config    *rest.Config
	namespace string
}

// office is a connection to the office, and what ends it.
type office struct {
	*sessions.Client
	close func() error
}

// reach connects to the office.
func (c *cli) reach(ctx context.Context, k cluster, f officeFlags) (*office, error) {
	if k.config.Impersonate.UserName != "" {
		return nil, errors.New("sessions cannot be used as somebody else: leave out --as, and choose a user without as in the kubeconfig")
	}
	public, publicErr := published(ctx, k.client, f.namespace)
	ca := []byte(public[officeCA])
	if f.ca != "" {
		var err error
		if ca, err = os.ReadFile(f.ca); err != nil {
			return nil, fmt.Errorf("read --office-ca: %w", err)
		}
	}
	if f.url != "" {
		where, err := url.Parse(f.url)
		if err != nil {
			return nil, fmt.Errorf("--office-url: %w", err)
		}
		// Without a CA of its own, the office's certificate has to be one that this machine trusts.
		client, err := sessions.New(k.config, sessions.Options{URL: where, CA: ca})
		return &office{client, func() error { return nil }}, err
	}
	if publicErr != nil {
		return nil, publicErr
	}
	where, err := url.Parse(public[officeURL])
	if err != nil || where.Hostname() == "" || len(ca) == 0 {
		return nil, fmt.Errorf("the ConfigMap %s/%s does not say how to reach the office: is the manager of an older release?", f.namespace, officeName)
	}
	through := tunnel.New(k.config, func(ctx context.Context) (tunnel.Target, error) { return managerPod(ctx, k.client, f.namespace) })
	client, err := sessions.New(k.config, sessions.Options{URL: where, CA: ca, Dial: through.DialContext})
	if err != nil {
		return nil, err
	}
	return &office{client, through.Close}, nil
}

// published reads what the manager publishes.
func published(ctx context.Context, k client.Client, namespace string) (map[string]string, error) {
	found := &corev1.ConfigMap{}
	err := k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: officeName}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no ConfigMap %s in namespace %s, where the manager publishes how to reach the office: name the manager's "+
			"namespace with --office-namespace, or see whether the manager runs", officeName, namespace)
	case err != nil:
		return nil, mayReach(namespace, err)
	}
	return found.Data, nil
}

// managerPod finds the pod in which the office runs, as the Service in front of it does: the manager that leads is ready, others are not.
func managerPod(ctx context.Context, k client.Client, namespace string) (tunnel.Target, error) {
	service := &corev1.Service{}
	if err := k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: officeName}, service); err != nil {
		if apierrors.IsNotFound(err) {
			return tunnel.Target{}, fmt.Errorf("there is no Service %s in namespace %s: name the manager's namespace with --office-namespace, "+
				"or reach the office with --office-url", officeName, namespace)
		}
		return tunnel.Target{}, mayReach(namespace, err)
	}
	var pods corev1.PodList
	selector := labels.SelectorFromSet(service.Spec.Selector)
	err := k.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return tunnel.Target{}, mayReach(namespace, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if ready(pod) {
			return tunnel.Target{Namespace: namespace, Pod: pod.Name, Port: portOf(service, pod)}, nil
		}
	}
	return tunnel.Target{}, fmt.Errorf("no manager is ready (%d of its pods are there): kubectl --namespace %s get pods --selector %s says why",
		len(pods.Items), namespace, selector)
}

// ready says whether a pod serves.
func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// usualPort is the office's.
const usualPort = 8443

// portOf is the port of the pod that the Service leads to.
func portOf(service *corev1.Service, pod *corev1.Pod) int {
	if len(service.Spec.Ports) == 0 {
		return usualPort
	}
	port := service.Spec.Ports[0]
	if name := port.TargetPort.StrVal; name != "" {
		for _, container := range pod.Spec.Containers {
			for _, p := range container.Ports {
				if p.Name == name {
					return int(p.ContainerPort)
				}
			}
		}
		return usualPort
	}
	return cmp.Or(int(port.TargetPort.IntVal), int(port.Port), usualPort)
}

// mayReach adds to an error what somebody needs who reaches the office by a port-forward.
func mayReach(namespace string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return &hintError{err: err, hint: "To reach the office by a port-forward takes this Role in the namespace " + namespace + ":\n\n" + reachRole}
}

// hintError is an error that says more in lines of its own.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

// Roles that errors show; docs/kubectl-bullpen.md has them too.
const (
	reachRole = `    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      namespace: bullpen
      name: bullpen-office-user
    rules:
    - apiGroups: [""]
      resources: [configmaps, services]
      resourceNames: [bullpen-office]
      verbs: [get]
    - apiGroups: [""]
      resources: [pods]
      verbs: [list]
    - apiGroups: [""]
      resources: [pods/portforward]
      verbs: [create]`
	userRole = `    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      name: bullpen-session-user
    rules:
    - apiGroups: [bullpen.dev]
      resources: [workitems, workitems/session]
      verbs: [get, list]
    - apiGroups: [bullpen.dev]
      resources: [workitems/message, workitems/stop]
      verbs: [create]`
)

// may says whether the user may do something with a subresource of a work item. Where that cannot be found out, it is assumed.
func (k cluster) may(ctx context.Context, verb, subresource, name string) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "bullpen.dev", Resource: "workitems", Subresource: subresource, Verb: verb, Namespace: k.namespace, Name: name,
		},
	}}
	return k.client.Create(ctx, review) != nil || review.Status.Allowed
}

// forbidden says which right is missing.
func forbidden(verb, subresource, namespace string) error {
	return &hintError{
		err:  fmt.Errorf("you may not %s workitems/%s of bullpen.dev in namespace %s", verb, subresource, namespace),
		hint: "A role for it, to bind in that namespace:\n\n" + userRole,
	}
}
