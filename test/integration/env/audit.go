package env

// This file has the audit log, from which tests count what was written.

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// auditPolicy records each request once, when its answer is complete.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
`

func (e *Env) enableAudit(plane *envtest.Environment) error {
	policy := filepath.Join(e.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	e.auditLog = filepath.Join(e.dir, "audit.log")
	// In blocking mode, an event is in the log before its request is answered.
	plane.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", e.auditLog).
		Set("audit-log-mode", "blocking").
		Set("audit-log-maxsize", "0")
	return nil
}

// AuditEvents gives the events of all requests that were answered so far and that keep accepts (all of them, if it is nil), in
// order. The control plane must have been started [WithAudit].
func (e *Env) AuditEvents(t testing.TB, keep func(*auditv1.Event) bool) []auditv1.Event {
	t.Helper()
	events, err := e.auditEvents(keep)
	if err != nil {
		t.Fatalf("the audit log cannot be read: %v", err)
	}
	return events
}

func (e *Env) auditEvents(keep func(*auditv1.Event) bool) ([]auditv1.Event, error) {
	if e.auditLog == "" {
		return nil, errors.New("there is none: start the control plane with env.WithAudit()")
	}
	return ReadAuditLog(e.auditLog, keep)
}

// ReadAuditLog gives the events of a log file of kube-apiserver that keep accepts (all of them, if it is nil), in order.
func ReadAuditLog(path string, keep func(*auditv1.Event) bool) ([]auditv1.Event, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a test's own file
	if err != nil {
		return nil, err
	}
	var events []auditv1.Event
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // a request that is being answered right now
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, err
		}
		if keep == nil || keep(&event) {
			events = append(events, event)
		}
	}
	return events, nil
}

// Writes accepts successful writes to a resource ("workitems", or "workitems/status" for its status) in a namespace, for use
// with [Env.AuditEvents].
func Writes(namespace, resource string) func(*auditv1.Event) bool {
	return func(event *auditv1.Event) bool {
		ref := event.ObjectRef
		if ref == nil || ref.Namespace != namespace || event.ResponseStatus == nil || event.ResponseStatus.Code >= 300 {
			return false
		}
		name := ref.Resource
		if ref.Subresource != "" {
			name += "/" + ref.Subresource
		}
		switch event.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			return name == resource
		}
		return false
	}
}
