package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// address is the one that everything has.
const address = "127.0.0.1"

// sources read what environment variables and volumes refer to. Errors are the
// API server's.
type sources interface {
	secret(namespace, name string) (*corev1.Secret, error)
	configMap(namespace, name string) (*corev1.ConfigMap, error)
}

// environ is how a container's environment is made.
type environ struct {
	pod         *corev1.Pod
	container   *corev1.Container
	sources     sources
	allocatable corev1.ResourceList
	// services are variables that any container gets.
	services map[string]string
}

// resolve returns the variables that the pod gives to the container, as a kubelet
// does: envFrom first, then env in its order, $(NAME) expanded. Paths are not
// translated yet. An error says what is missing.
func (e environ) resolve() (map[string]string, error) {
	values := map[string]string{}
	for _, from := range e.container.EnvFrom {
		if err := e.addAll(values, from); err != nil {
			return nil, err
		}
	}
	mapping := expansion.MappingFuncFor(values, e.services)
	for _, variable := range e.container.Env {
		if variable.Value != "" || variable.ValueFrom == nil {
			values[variable.Name] = expansion.Expand(variable.Value, mapping)
			continue
		}
		value, found, err := e.from(variable.ValueFrom)
		if err != nil {
			return nil, err
		}
		if found {
			values[variable.Name] = value
		}
	}
	for name, value := range e.services {
		if _, own := values[name]; !own {
			values[name] = value
		}
	}
	return values, nil
}

// addAll adds all keys of a config map or a secret.
func (e environ) addAll(values map[string]string, from corev1.EnvFromSource) error {
	switch {
	case from.ConfigMapRef != nil:
		configMap, err := e.sources.configMap(e.pod.Namespace, from.ConfigMapRef.Name)
		if err != nil {
			return missing(err, from.ConfigMapRef.Optional)
		}
		for key, value := range configMap.Data {
			values[from.Prefix+key] = value
		}
	case from.SecretRef != nil:
		secret, err := e.sources.secret(e.pod.Namespace, from.SecretRef.Name)
		if err != nil {
			return missing(err, from.SecretRef.Optional)
		}
		for key, value := range secret.Data {
			values[from.Prefix+key] = string(value)
		}
	}
	return nil
}

// from reads the source of one variable. found is false if an optional source
// is not there.
func (e environ) from(source *corev1.EnvVarSource) (value string, found bool, err error) {
	switch {
	case source.FieldRef != nil:
		value, err = podField(e.pod, source.FieldRef.FieldPath)
		return value, true, err
	case source.ResourceFieldRef != nil:
		name := source.ResourceFieldRef.ContainerName
		if name == "" {
			name = e.container.Name
		}
		value, err = resource.ExtractResourceValueByContainerNameAndNodeAllocatable(source.ResourceFieldRef, e.pod, name, e.allocatable)
		return value, true, err
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		configMap, err := e.sources.configMap(e.pod.Namespace, ref.Name)
		if err != nil {
			return "", false, missing(err, ref.Optional)
		}
		value, found = configMap.Data[ref.Key]
		return value, found, e.missingKey(found, ref.Optional, ref.Key, "ConfigMap", ref.Name)
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		secret, err := e.sources.secret(e.pod.Namespace, ref.Name)
		if err != nil {
			return "", false, missing(err, ref.Optional)
		}
		data, ok := secret.Data[ref.Key]
		return string(data), ok, e.missingKey(ok, ref.Optional, ref.Key, "Secret", ref.Name)
	}
	return "", false, fmt.Errorf("this node knows no such source of an environment variable: %v", source)
}

func (e environ) missingKey(found bool, optional *bool, key, kind, name string) error {
	if found || isOptional(optional) {
		return nil
	}
	return fmt.Errorf("couldn't find key %s in %s %s/%s", key, kind, e.pod.Namespace, name)
}

// missing drops the error about an optional object that is not there.
func missing(err error, optional *bool) error {
	if isOptional(optional) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// podField returns a field of the pod for the downward API.
func podField(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return address, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

// expandAll replaces $(NAME) in the words of a command.
func expandAll(words []string, variables map[string]string) []string {
	mapping := expansion.MappingFuncFor(variables)
	expanded := make([]string, len(words))
	for i, word := range words {
		expanded[i] = expansion.Expand(word, mapping)
	}
	return expanded
}

// defaultPath is where programs of an image are looked for.
var defaultPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/"}

// searchPath is the default PATH: the folders of the image that exist, then
// the machine's own.
func searchPath(image, machine string) string {
	var dirs []string
	for _, dir := range defaultPath {
		if path := filepath.Join(image, dir); exists(path) {
			dirs = append(dirs, path)
		}
	}
	if machine != "" {
		dirs = append(dirs, machine)
	}
	return strings.Join(dirs, string(os.PathListSeparator))
}

// processEnv makes the environment of a process: defaults, then the pod's
// variables with their paths translated, as NAME=value, sorted.
func processEnv(defaults, variables map[string]string, t translator) []string {
	all := map[string]string{}
	for name, value := range defaults {
		all[name] = value
	}
	for name, value := range variables {
		all[name] = t.text(value)
	}
	env := make([]string, 0, len(all))
	for name, value := range all {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}
