package controllers

// This file gives work items a text by which kubectl sorts them as they run: kubectl get workitems --sort-by=.status.order.

import (
	"cmp"
	"fmt"

	"github.com/bullpen-dev/bullpen/office/model"
)

// maxOrder is the longest order that a status can have. Only items that were put between others hundreds of times would have a longer one.
const maxOrder = 512

// mostPriority is the largest priority that the API takes, and its opposite the smallest.
const mostPriority = 1_000_000

// order is the item's: first whose queue it is in, then as in that queue. Finished items have none.
//
// kubectl compares runs of digits as numbers, and digits before all else. So numbers have a fixed width here, and the key of the rank,
// which is compared as bytes, is written in letters.
func order(it *model.Item) string {
	if it.Finished() {
		return ""
	}
	queue := "role." + it.Spec.Role
	if who := cmp.Or(it.Assignee, it.Spec.Person); who != "" {
		queue = "person." + who
	}
	place := 1
	if it.Front {
		place = 0
	}
	rank := it.Rank()
	priority := min(max(int64(rank.Priority), -mostPriority), mostPriority) + mostPriority
	text := fmt.Sprintf("%s/%d/%07d/%s", queue, place, priority, letters(rank.Key))
	return text[:min(len(text), maxOrder)]
}

// letters writes each byte of a text as two letters, which compare as the bytes do.
func letters(text string) string {
	out := make([]byte, 0, 2*len(text))
	for _, b := range []byte(text) {
		out = append(out, 'a'+b>>4, 'a'+b&15)
	}
	return string(out)
}
