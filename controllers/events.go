package controllers

// This file reads the token by which the office knows who may send a team's events. The Secret is its user's, so it is not in the
// cache: it is read from the API server, seldom, and only its hash goes further.

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// tokenEvery is how often a team's Secret is read again, and so how long a change of it may take.
const tokenEvery = 20 * time.Second

// eventsToken is what is known of the token of a team's events.
type eventsToken struct {
	// hash is the SHA-256 of the token; zero takes no events.
	hash [sha256.Size]byte
	// ready is the condition to show; nil for a team that declares no events.
	ready *metav1.Condition
}

// eventsTokens remembers the tokens of teams, as hashes.
type eventsTokens struct {
	mu   sync.Mutex
	read map[types.NamespacedName]readToken
}

type readToken struct {
	eventsToken
	at   time.Time
	from api.SecretKey
}

// of gives the token of a team's events, read at most tokenEvery ago. An error says that the API server cannot be asked now.
func (t *eventsTokens) of(ctx context.Context, live client.Reader, team *api.Team, now time.Time) (eventsToken, error) {
	key := client.ObjectKeyFromObject(team)
	if team.Spec.Events == nil {
		t.forget(key)
		return eventsToken{}, nil
	}
	from := team.Spec.Events.TokenSecret
	t.mu.Lock()
	last, known := t.read[key]
	t.mu.Unlock()
	known = known && last.from == from
	if known && now.Before(last.at.Add(tokenEvery)) {
		return last.eventsToken, nil
	}
	token, err := readEventsToken(ctx, live, team.Namespace, from)
	if err != nil {
		if known {
			log.FromContext(ctx).Error(err, "The Secret with the token of a team's events cannot be read now; the last one stays in use")
			return last.eventsToken, nil
		}
		return eventsToken{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read[key] = readToken{eventsToken: token, at: now, from: from}
	return token, nil
}

func (t *eventsTokens) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.read, key)
}

// readEventsToken reads the Secret and says what came of it.
func readEventsToken(ctx context.Context, live client.Reader, namespace string, from api.SecretKey) (eventsToken, error) {
	secret := &corev1.Secret{}
	err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: string(from.Name)}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return noEvents(api.ReasonTokenMissing, "There is no Secret %q in this namespace. Make it, with the token under the key %q; until then no events are taken.",
			from.Name, from.Key), nil
	case apierrors.IsForbidden(err):
		return noEvents(api.ReasonTokenUnreadable, "The operator may not read the Secret %q. Let its ClusterRole get secrets; until then no events are taken.",
			from.Name), nil
	case err != nil:
		return eventsToken{}, err
	}
	value, there := secret.Data[from.Key]
	token := strings.TrimSpace(string(value))
	switch {
	case !there:
		return noEvents(api.ReasonTokenMissing, "The Secret %q has no key %q. Put the token there, or name its key in spec.events.tokenSecret.key.", from.Name, from.Key), nil
	case token == "":
		return noEvents(api.ReasonTokenMissing, "The key %q of the Secret %q is empty. Put the token there.", from.Key, from.Name), nil
	}
	ready := condition(api.ConditionEvents, true, api.ReasonEventsAccepted, fmt.Sprintf(
		"The office takes events that come with the token in Secret %q.", from.Name))
	return eventsToken{hash: sha256.Sum256([]byte(token)), ready: &ready}, nil
}

func noEvents(reason, format string, args ...any) eventsToken {
	ready := condition(api.ConditionEvents, false, reason, fmt.Sprintf(format, args...))
	return eventsToken{ready: &ready}
}
