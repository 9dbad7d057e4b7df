package cluster

import (
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/binaries"
)

// userKubeletClient is who the API server is towards the node.
const userKubeletClient = "kube-apiserver-kubelet-client"

// controllers are those of kube-controller-manager that somebody who works with
// pods, volumes and workloads misses when they are not there.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"deployment-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"persistentvolume-binder-controller",
	"persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"ttl-after-finished-controller",
}

// ports are those that the cluster listens on at 127.0.0.1.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager, scheduler, kubelet int
}

func newPorts() (ports, error) {
	free, err := freePorts(6)
	if err != nil {
		return ports{}, err
	}
	return ports{free[0], free[1], free[2], free[3], free[4], free[5]}, nil
}

func loopback(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

// etcdArgs runs one member. The state is thrown away with the cluster, so it
// need not survive a power cut.
func etcdArgs(s state, p ports) []string {
	peer := fmt.Sprintf("http://127.0.0.1:%d", p.etcdPeer)
	return []string{
		"--name=localcluster",
		"--data-dir=" + s.path("etcd"),
		"--listen-client-urls=" + loopback(p.etcd),
		"--advertise-client-urls=" + loopback(p.etcd),
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=localcluster=" + peer,
		"--cert-file=" + s.pki("etcd.crt"),
		"--key-file=" + s.pki("etcd.key"),
		"--trusted-ca-file=" + s.pki("ca.crt"),
		"--client-cert-auth",
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

// apiServerArgs runs an API server as strict as any: authentication by
// certificate and token, role-based rules, the default admission plugins.
func apiServerArgs(s state, p ports) []string {
	return []string{
		"--etcd-servers=" + loopback(p.etcd),
		"--etcd-cafile=" + s.pki("ca.crt"),
		"--etcd-certfile=" + s.pki("apiserver-etcd-client.crt"),
		"--etcd-keyfile=" + s.pki("apiserver-etcd-client.key"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.apiServer),
		"--tls-cert-file=" + s.pki("apiserver.crt"),
		"--tls-private-key-file=" + s.pki("apiserver.key"),
		"--client-ca-file=" + s.pki("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.pki("sa.key"),
		"--service-account-signing-key-file=" + s.pki("sa.key"),
		"--service-cluster-ip-range=10.0.0.0/16",
		// The address is loopback, which Endpoints may not name.
		"--endpoint-reconciler-type=none",
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority=" + s.pki("ca.crt"),
		"--kubelet-client-certificate=" + s.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + s.pki("apiserver-kubelet-client.key"),
		"--requestheader-client-ca-file=" + s.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + s.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + s.pki("front-proxy-client.key"),
		"--profiling=false",
	}
}

// componentArgs are what kube-controller-manager and kube-scheduler share.
func componentArgs(s state, name string, port int) []string {
	return []string{
		"--kubeconfig=" + s.user(name),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + s.pki("components.crt"),
		"--tls-private-key-file=" + s.pki("components.key"),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}
}

func controllerManagerArgs(s state, p ports) []string {
	return append(componentArgs(s, binaries.ControllerManager, p.controllerManager),
		"--controllers="+strings.Join(controllers, ","),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+s.pki("sa.key"),
		"--root-ca-file="+s.pki("ca.crt"),
	)
}

func schedulerArgs(s state, p ports) []string {
	return componentArgs(s, binaries.Scheduler, p.scheduler)
}
