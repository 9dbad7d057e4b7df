// Package node is a Kubernetes node that runs the containers of a pod as local
// processes, without root and without a container engine.
//
// # What it is built on
//
// The node object and its lease, and the HTTP endpoint that the API server uses
// for logs and exec, are virtual-kubelet's. Its pod controller is not used: that
// one removes the pod object when the grace period is over, whether or not the
// processes have ended, and not earlier. Programs that rely on "a pod that is gone
// does not run any more" could not be tested with it. Environment, projected
// volumes, log files and probes use the kubelet's own packages.
//
// # Images
//
// An image is a folder that stands for the image's root, see Images. Nothing is
// copied: all pods of an image share the folder, so it should be read-only to
// them. The command comes from the pod, or from the file .entrypoint (a JSON
// array) in the image.
//
// # Paths
//
// There is no mount namespace. A volume is a folder below the pod's own, and the
// path at which a pod mounts it is replaced by that folder wherever it starts a
// path in the values of environment variables, in command, args and workingDir.
// A program must therefore take its paths from there; one that opens /etc/secret
// by itself gets the machine's. Absolute paths in command and args that exist in
// the image become paths into it.
//
// # Life of a container
//
// Restart policy, crash-loop back-off, init containers and sidecars, exec, HTTP
// and TCP probes, preStop hooks, termination messages, SIGTERM to the main process,
// the grace period and then SIGKILL are as a kubelet has them. When the main process
// ends, all that it has started is killed, as the end of a process namespace would.
//
// # What it does not do
//
// No isolation: containers see the machine's files, processes and network. Every
// pod has the address 127.0.0.1, so two of them cannot listen on one port.
// Security contexts, resource limits, read-only mounts and volume sizes are accepted
// and not enforced. Services have no address that answers. Terminals (kubectl exec
// -t) are not emulated; gRPC probes and postStart hooks do not exist.
package node
