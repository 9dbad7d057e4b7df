package controllers

// This file keeps the office's certificate: the operator's own, in a Secret, or one that was given in a folder.

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/pki"
)

const (
	// TLSSecretName is the Secret with the office's CA and certificate, in the manager's namespace.
	TLSSecretName = "bullpen-office-tls"
	// tlsLook is how often the Secret is looked at, in case somebody changed it.
	tlsLook = 10 * time.Minute
	tlsTry  = time.Second
)

// errNoCertificate says that Ensure has not succeeded yet.
var errNoCertificate = errors.New("the office has no certificate yet")

// OfficeTLS keeps the operator's own CA and the office's certificate in a Secret, renews both in time, and hands them out. It
// is a Runnable of the leader and a CASource.
type OfficeTLS struct {
	client    client.Client
	namespace string
	names     []string
	now       func() time.Time

	mu      sync.RWMutex
	cert    *tls.Certificate
	bundle  []byte
	changed chan struct{}
}

// NewOfficeTLS keeps the certificate in the namespace for an office that is reached under names. The client should read from
// the API server, not from a cache: it is used before the manager starts.
func NewOfficeTLS(c client.Client, namespace string, names []string, now func() time.Time) *OfficeTLS {
	return &OfficeTLS{client: c, namespace: namespace, names: names, now: now, changed: make(chan struct{}, 1)}
}

// GetCertificate is for tls.Config.
func (t *OfficeTLS) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.cert == nil {
		return nil, errNoCertificate
	}
	return t.cert, nil
}

// CABundle is what agents trust, PEM.
func (t *OfficeTLS) CABundle() ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.bundle) == 0 {
		return nil, errNoCertificate
	}
	return t.bundle, nil
}

// BundleChanged delivers after the bundle changed.
func (t *OfficeTLS) BundleChanged() <-chan struct{} { return t.changed }

// Start keeps the Secret until ctx ends.
func (t *OfficeTLS) Start(ctx context.Context) error {
	for {
		next, err := t.Ensure(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "The office's certificate could not be kept; trying again",
				"secret", t.namespace+"/"+TLSSecretName)
			next = t.now().Add(tlsTry)
		}
		timer := time.NewTimer(min(tlsLook, max(tlsTry, next.Sub(t.now()))))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// EnsureSoon is Ensure, tried again until it succeeds or ctx ends.
func (t *OfficeTLS) EnsureSoon(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, tlsTry, true, func(ctx context.Context) (bool, error) {
		_, err := t.Ensure(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "The office's certificate could not be made; trying again",
				"secret", t.namespace+"/"+TLSSecretName)
		}
		return err == nil, nil
	})
}

// Ensure makes the Secret what it should be now, takes it into use, and says when to call again at the latest. A Secret of
// that name that is not the operator's is an error that says so.
func (t *OfficeTLS) Ensure(ctx context.Context) (next time.Time, err error) {
	// 1. Read.
	secret := &corev1.Secret{}
	err = t.client.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: TLSSecretName}, secret)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, err
	}
	if exists && secret.Labels[api.LabelManagedBy] != api.LabelManagedByValue {
		return time.Time{}, fmt.Errorf("the Secret %s/%s was not made by the operator (it lacks the label %s=%s): rename it, or give "+
			"your own certificate with --office-cert-dir", t.namespace, TLSSecretName, api.LabelManagedBy, api.LabelManagedByValue)
	}
	// 2. Plan.
	data, next, changed, err := pki.Plan(secret.Data, t.names, t.now())
	if err != nil {
		return time.Time{}, err
	}
	// 3. Write; of several managers one succeeds, the others read again.
	if changed {
		if err := t.write(ctx, secret, exists, data); err != nil {
			return time.Time{}, err
		}
	}
	// 4. Use.
	return next, t.use(data)
}

func (t *OfficeTLS) write(ctx context.Context, secret *corev1.Secret, exists bool, data map[string][]byte) error {
	if exists {
		old := secret.DeepCopy()
		secret.Data = data
		return t.client.Patch(ctx, secret, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
	}
	err := t.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.namespace,
			Name:      TLSSecretName,
			Labels:    map[string]string{api.LabelManagedBy: api.LabelManagedByValue, api.LabelComponent: "office"},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("another manager was first: %w", err)
	}
	return err
}

func (t *OfficeTLS) use(data map[string][]byte) error {
	cert, err := tls.X509KeyPair(data[pki.CertKey], data[pki.PrivateKeyKey])
	if err != nil {
		return fmt.Errorf("the planned certificate is not usable: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := !bytes.Equal(t.bundle, data[pki.BundleKey])
	t.cert, t.bundle = &cert, data[pki.BundleKey]
	if changed {
		notify(t.changed)
	}
	return nil
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// GivenTLS hands out a certificate from a folder with tls.crt, tls.key and ca.crt, as cert-manager's Secrets have them, and
// notices when they change. It is a Runnable and a CASource.
type GivenTLS struct {
	*certwatcher.CertWatcher
	bundleFile string
	changed    chan struct{}
}

// NewGivenTLS reads the folder. The error says which file is missing or wrong.
func NewGivenTLS(dir string) (*GivenTLS, error) {
	watcher, err := certwatcher.New(filepath.Join(dir, pki.CertKey), filepath.Join(dir, pki.PrivateKeyKey))
	if err != nil {
		return nil, fmt.Errorf("read the office's certificate: %w", err)
	}
	t := &GivenTLS{CertWatcher: watcher, bundleFile: filepath.Join(dir, pki.BundleKey), changed: make(chan struct{}, 1)}
	if _, err := t.CABundle(); err != nil {
		return nil, err
	}
	watcher.RegisterCallback(func(tls.Certificate) { notify(t.changed) })
	return t, nil
}

// CABundle is what agents trust, PEM.
func (t *GivenTLS) CABundle() ([]byte, error) {
	bundle, err := os.ReadFile(t.bundleFile)
	if err != nil {
		return nil, fmt.Errorf("read the CA by which agents trust the office's certificate: %w", err)
	}
	if len(bytes.TrimSpace(bundle)) == 0 {
		return nil, fmt.Errorf("%s is empty: it must hold the CA by which agents trust the office's certificate", t.bundleFile)
	}
	return bundle, nil
}

// BundleChanged delivers after the folder changed.
func (t *GivenTLS) BundleChanged() <-chan struct{} { return t.changed }
