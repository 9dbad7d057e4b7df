package controllers

// This file builds the parts of status that kinds share: conditions, times and texts.

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// messageRunes bounds what a condition says.
const messageRunes = 1024

// setConditions gives the conditions of a status after those of old: wanted ones set, all others gone. A condition that keeps
// its status keeps its transition time.
func setConditions(old []metav1.Condition, generation int64, now time.Time, wanted ...metav1.Condition) []metav1.Condition {
	conditions := slices.Clone(old)
	conditions = slices.DeleteFunc(conditions, func(c metav1.Condition) bool {
		return !slices.ContainsFunc(wanted, func(w metav1.Condition) bool { return w.Type == c.Type })
	})
	for _, w := range wanted {
		w.ObservedGeneration = generation
		w.LastTransitionTime = stamp(now)
		w.Message = cut(w.Message, messageRunes)
		apimeta.SetStatusCondition(&conditions, w)
	}
	return conditions
}

func condition(kind string, status bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// stamp is a time as the API server keeps it.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }

// stampOf is a time as status holds it, nil where there is none.
func stampOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

func utcOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// cut shortens a text to so many characters, visibly.
func cut(text string, runes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= runes {
		return text
	}
	return string([]rune(text)[:runes-1]) + "…"
}

// line is a text on one line, cut.
func line(text string, runes int) string {
	return cut(strings.Join(strings.Fields(text), " "), runes)
}
