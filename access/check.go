package access

// This file looks whether the API server lets the manager ask at all, so that a missing binding is in the log before the first user
// meets it.

import (
	"context"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// needed are the permissions that sessions need of the manager.
var needed = []authorizationv1.ResourceAttributes{
	{Group: "authentication.k8s.io", Resource: "tokenreviews", Verb: "create"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verb: "create"},
	{Resource: "namespaces", Verb: "get"},
	{Resource: "configmaps", Verb: "get", Namespace: authNamespace, Name: authConfigMap},
}

// check says what is missing, and when it is there, until nothing is missing or ctx ends.
func (a *Access) check(ctx context.Context) {
	ticker := time.NewTicker(checkPeriod)
	defer ticker.Stop()
	for told := ""; ; {
		missing, err := a.Missing(ctx)
		text := strings.Join(missing, ", ")
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.log.Warn("It could not be found out whether sessions can be used; it is tried again", "error", err)
		case text == "" && told == "":
			return
		case text == "":
			a.log.Info("The manager has the permissions now that sessions need")
			return
		case text != told:
			a.log.Warn("Nobody can use sessions until the manager has these permissions too: apply config/rbac/sessions.yaml", "missing", text)
			told = text
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Missing lists the permissions that the manager lacks for sessions, such as "create tokenreviews".
func (a *Access) Missing(ctx context.Context) ([]string, error) {
	var missing []string
	for i := range needed {
		review, err := a.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needed[i]},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, unavailable("create selfsubjectaccessreviews", err)
		}
		if !review.Status.Allowed {
			text := needed[i].Verb + " " + needed[i].Resource
			if needed[i].Name != "" {
				text += " " + needed[i].Namespace + "/" + needed[i].Name
			}
			missing = append(missing, text)
		}
	}
	return missing, nil
}
