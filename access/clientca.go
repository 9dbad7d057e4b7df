package access

// This file has the server's side of client certificates.

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"sync"
)

// Where the API server publishes the CA that it knows client certificates by.
const (
	authNamespace = "kube-system"
	authConfigMap = "extension-apiserver-authentication"
	authKey       = "client-ca-file"
)

// TLS makes the configuration of the office's server one that asks for client certificates without needing them: agents and users with
// tokens have none. It names the cluster's client CA, so that clients, and browsers above all, offer only certificates of it. Whose a
// certificate is, Authenticate finds out. The base is not changed.
func (a *Access) TLS(base *tls.Config) *tls.Config {
	return withClientCA(base, a.clientCA.CurrentCABundleContent)
}

// withClientCA asks for certificates of the CAs in the bundle, which may change.
func withClientCA(base *tls.Config, bundle func() []byte) *tls.Config {
	config := base.Clone()
	config.ClientAuth = tls.RequestClientCert
	// One configuration serves all connections while the bundle stays the same: a clone for each would cost memory while it lasts.
	var (
		mu      sync.Mutex
		current []byte
		asking  *tls.Config
	)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pem := bundle()
		if len(pem) == 0 {
			return nil, nil // the CA is not known (yet): the one above serves
		}
		mu.Lock()
		defer mu.Unlock()
		if asking == nil || !bytes.Equal(pem, current) {
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(pem)
			asking = config.Clone()
			asking.GetConfigForClient = nil
			asking.ClientCAs = pool
			current = pem
		}
		return asking, nil
	}
	return config
}
