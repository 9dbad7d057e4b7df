package cluster

import (
	"time"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/pki"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Users of the cluster. The role-based rules that every API server has know the
// names of the two components.
const (
	userAdmin             = "admin"
	userNode              = "localcluster-node"
	userControllerManager = "system:kube-controller-manager"
	userScheduler         = "system:kube-scheduler"
	groupMasters          = "system:masters"
)

// credentials are the cluster's authority and where its API server listens.
type credentials struct {
	authority *pki.Authority
	server    string
	now       time.Time
}

// writePKI makes the authorities, certificates and keys that the programs read
// from files.
func writePKI(s state, now time.Time) (*pki.Authority, error) {
	ca, err := pki.NewAuthority("localcluster", now)
	if err != nil {
		return nil, err
	}
	// Requests that an aggregating proxy passes on have an authority of their
	// own: whoever it signs for may speak as anybody.
	proxyCA, err := pki.NewAuthority("localcluster-front-proxy", now)
	if err != nil {
		return nil, err
	}
	signingKey, err := pki.NewKey()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		"ca.crt":             ca.Cert(),
		"front-proxy-ca.crt": proxyCA.Cert(),
		"sa.key":             signingKey,
	}
	for _, wanted := range []struct {
		name string
		pair func() (pki.Pair, error)
	}{
		{"etcd", func() (pki.Pair, error) { return ca.Server("etcd", now) }},
		{"apiserver", func() (pki.Pair, error) {
			return ca.Server("kube-apiserver", now, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
		}},
		{"components", func() (pki.Pair, error) { return ca.Server("components", now) }},
		{"node", func() (pki.Pair, error) { return ca.Server(NodeName, now) }},
		{"apiserver-etcd-client", func() (pki.Pair, error) { return ca.Client("kube-apiserver-etcd-client", now) }},
		{"apiserver-kubelet-client", func() (pki.Pair, error) { return ca.Client(userKubeletClient, now, groupMasters) }},
		{"front-proxy-client", func() (pki.Pair, error) { return proxyCA.Client("front-proxy-client", now) }},
	} {
		pair, err := wanted.pair()
		if err != nil {
			return nil, err
		}
		files[wanted.name+".crt"], files[wanted.name+".key"] = pair.Cert, pair.Key
	}
	for name, data := range files {
		if err := writeFile(s.pki(name), data); err != nil {
			return nil, err
		}
	}
	return ca, nil
}

// kubeconfig makes the configuration of a client that is user.
func (c credentials) kubeconfig(user string, groups ...string) (*api.Config, error) {
	pair, err := c.authority.Client(user, c.now, groups...)
	if err != nil {
		return nil, err
	}
	const name = "localcluster"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: c.server, CertificateAuthorityData: c.authority.Cert()}
	config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	return config, nil
}

// write makes a kubeconfig file for user.
func (c credentials) write(path, user string, groups ...string) error {
	config, err := c.kubeconfig(user, groups...)
	if err != nil {
		return err
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

// rest makes a client configuration for user, without a limit on its rate: the
// API server's own is enough.
func (c credentials) rest(user string, groups ...string) (*rest.Config, error) {
	config, err := c.kubeconfig(user, groups...)
	if err != nil {
		return nil, err
	}
	client, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	client.QPS = -1
	return client, nil
}
