package main

// This file decides what thinks in the demo: Claude Code or Codex where this machine has the program and a key for it, else a program that does
// what the items say.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// thinker is a runtime that the demo can use.
type thinker struct {
	// runtime is what spec.agent.runtime is set to; program is what must be on the PATH.
	runtime, program string
	// keys are variables of which one must be set; all that are set go along, with extra ones.
	keys, extra []string
}

// thinkers in the order in which they are preferred.
var thinkers = []thinker{
	{"claude", "claude", []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}, []string{"ANTHROPIC_BASE_URL"}},
	{"codex", "codex", []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, []string{"OPENAI_BASE_URL"}},
}

// choose gives the first runtime whose program and key are there, with its variables; ok is false where none is.
func choose(getenv func(string) string, find func(string) (string, error)) (t thinker, env map[string]string, ok bool) {
	for _, t := range thinkers {
		env := map[string]string{}
		for _, name := range t.keys {
			if value := getenv(name); value != "" {
				env[name] = value
			}
		}
		if len(env) == 0 {
			continue
		}
		if _, err := find(t.program); err != nil {
			continue
		}
		for _, name := range t.extra {
			if value := getenv(name); value != "" {
				env[name] = value
			}
		}
		return t, env, true
	}
	return thinker{}, nil, false
}

// modelSecret is the Secret with the keys of the runtime.
const modelSecret = "model-account"

// withModel gives the sample's team a runtime that thinks, and the Secret with its keys; the repository's worktrees are then the operator's to
// make. Other objects are left as they are.
func withModel(objects []*unstructured.Unstructured, t thinker, env map[string]string, repository string) ([]*unstructured.Unstructured, error) {
	values := map[string]any{}
	for name, value := range env {
		values[name] = value
	}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == "Team" {
			all = append(all, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": modelSecret, "namespace": o.GetNamespace()}, "stringData": values,
			}})
			err := errors.Join(
				unstructured.SetNestedField(o.Object, t.runtime, "spec", "agent", "runtime"),
				unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": modelSecret}}, "spec", "agent", "secrets"),
				unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": "greeter", "url": repository}}, "spec", "repositories"),
			)
			if err != nil {
				return nil, err
			}
			unstructured.RemoveNestedField(o.Object, "spec", "agent", "command")
		}
		all = append(all, o)
	}
	return all, nil
}

// readObjects reads the objects of a manifest.
func readObjects(r io.Reader) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(r, 4096)
	var objects []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// applyTeam applies the sample's team, with the runtime that thinks where there is one.
func (d *demo) applyTeam(ctx context.Context) error {
	path := filepath.Join(d.samples, "team.yaml")
	t, env, ok := choose(os.Getenv, exec.LookPath)
	if !ok {
		return d.kube(ctx, "apply", "--server-side", "--validate=strict", "-f", path)
	}
	d.thinker = t.runtime
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	objects, err := readObjects(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if objects, err = withModel(objects, t, env, d.repository()); err != nil {
		return err
	}
	var items []any
	for _, o := range objects {
		items = append(items, o.Object)
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		return err
	}
	// On standard input, because the keys must not be on a disk or in an argument.
	cmd := exec.CommandContext(ctx, d.kubectl(), "--kubeconfig", d.kubeconfig(), "apply", "--server-side", "--validate=strict", "-f", "-")
	cmd.Stdin = bytes.NewReader(list)
	return loud(cmd)
}
