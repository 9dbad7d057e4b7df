package controllers

// This file builds the parts of status that kinds share: conditions, usage, times and texts.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
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

func usageStatus(u model.Usage) api.UsageStatus {
	status := api.UsageStatus{
		InputTokens:         u.InputTokens,
		OutputTokens:        u.OutputTokens,
		CacheReadTokens:     u.CacheReadTokens,
		CacheCreationTokens: u.CacheCreationTokens,
		Tokens:              u.Tokens(),
	}
	if u.CostKnown {
		status.CostUSD = dollars(u.CostMicroUSD)
	}
	return status
}

func usageOf(s api.UsageStatus) model.Usage {
	micro, known := microUSD(s.CostUSD)
	return model.Usage{
		InputTokens:         s.InputTokens,
		OutputTokens:        s.OutputTokens,
		CacheReadTokens:     s.CacheReadTokens,
		CacheCreationTokens: s.CacheCreationTokens,
		CostMicroUSD:        micro,
		CostKnown:           known,
	}
}

// dollars writes millionths of a US dollar as a decimal with at least two digits after the point.
func dollars(micro int64) string {
	text := fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000)
	cents := len(text) - 4
	return text[:cents] + strings.TrimRight(text[cents:], "0")
}

// microUSD reads what dollars wrote.
func microUSD(text string) (micro int64, known bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > 6 {
		return 0, false
	}
	micro, err := strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
	return micro, err == nil && whole != ""
}
