package workstate

import (
	"strings"
	"testing"
)

// good has the least data of each type of event.
var good = map[string]string{
	EventTicketChanged:     `{"key":"ACME-1","title":"Login","status":"active"}`,
	EventTicketCommented:   `{"ticket":"ACME-1","comment":{"id":"1","author":{"login":"grace"},"body":"x"}}`,
	EventPullChanged:       `{"repo":"acme/shop","number":7,"title":"x","state":"open","author":{"login":"ada"},"head":"fix","base":"main"}`,
	EventPullCommented:     `{"repo":"acme/shop","number":7,"comment":{"id":"1","author":{"login":"grace"},"body":"x"}}`,
	EventPullReviewed:      `{"repo":"acme/shop","number":7,"review":{"id":"1","author":{"login":"grace"},"state":"approved"}}`,
	EventPullReviewComment: `{"repo":"acme/shop","number":7,"author":{"login":"grace"},"comment":{"id":"1","path":"a.go","body":"x"}}`,
	EventThreadResolved:    `{"repo":"acme/shop","number":7,"threadId":"t"}`,
	EventThreadUnresolved:  `{"repo":"acme/shop","number":7,"threadId":"t"}`,
	EventPullChecks:        `{"repo":"acme/shop","number":7,"sha":"abc","state":"failure","failing":[{"name":"lint"}]}`,
	EventDocChanged:        `{"id":"d","title":"x"}`,
	EventDocCommented:      `{"doc":"d","comment":{"id":"1","author":{"login":"grace"},"body":"x"}}`,
}

func TestTheLeastOfEveryEventIsRead(t *testing.T) {
	if len(good) != len(Types()) {
		t.Errorf("there are %d types of events, and examples of %d", len(Types()), len(good))
	}
	for _, kind := range Types() {
		if d, err := ParseData(kind, []byte(good[kind]), "data"); err != nil || d == nil {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := ParseData(kind, []byte(strings.Replace(good[kind], "{", `{"fromTheFuture":1,`, 1)), "data"); err != nil {
			t.Errorf("%s: a member that is not known: %v", kind, err)
		}
		if _, err := ParseData(kind, nil, "data"); err == nil || !strings.Contains(err.Error(), "data is missing") {
			t.Errorf("%s without data: %v", kind, err)
		}
		if _, err := ParseData(kind, []byte("{}"), "[3].data"); err == nil || !strings.Contains(err.Error(), "[3].data.") {
			t.Errorf("%s with nothing in it: %v", kind, err)
		}
	}
	if d, err := ParseData("deploy.finished", []byte("[]"), "data"); d != nil || err != nil {
		t.Errorf("a type that is not known: %v, %v", d, err)
	}
}

func TestBadDataIsRefusedByItsPath(t *testing.T) {
	for _, tc := range []struct{ kind, old, with, says string }{
		{EventTicketChanged, `"ACME-1"`, `""`, "data.key must not be empty"},
		{EventTicketChanged, `"ACME-1"`, `" ACME-1"`, "data.key must not have space"},
		{EventTicketChanged, `"ACME-1"`, `"ACME\n1"`, "data.key must not have space at its ends, nor control"},
		{EventTicketChanged, `"ACME-1"`, `"` + strings.Repeat("x", 301) + `"`, "data.key has at most"},
		{EventTicketChanged, `"Login"`, `"` + strings.Repeat("x", 1001) + `"`, "data.title has at most"},
		{EventTicketChanged, `"active"`, `"open"`, "data.status must be"},
		{EventTicketChanged, `"title"`, `"assignee":{},"title"`, "data.assignee.login is required"},
		{EventTicketChanged, `"title"`, `"by":{"login":""},"title"`, "data.by.login must not be empty"},
		{EventTicketChanged, `"title"`, `"url":"/x","title"`, "data.url must be an absolute URL"},
		{EventTicketChanged, `"title"`, `"parent":"\u0000","title"`, "data.parent"},
		{EventTicketCommented, `"id":"1"`, `"id":""`, "data.comment.id must not be empty"},
		{EventTicketCommented, `"body"`, `"at":"noon","body"`, "data.comment.at must be"},
		{EventTicketCommented, `"grace"`, `7`, "data.comment.author.login must be a string"},
		{EventPullChanged, `"acme/shop"`, `"shop"`, "data.repo must be owner/name"},
		{EventPullChanged, `"acme/shop"`, `"acme/shop#7"`, "data.repo must be owner/name"},
		{EventPullChanged, `7`, `0`, "data.number must be"},
		{EventPullChanged, `"open"`, `"reopened"`, "data.state must be"},
		{EventPullChanged, `"fix"`, `""`, "data.head must not be empty"},
		{EventPullChanged, `"main"`, `""`, "data.base must not be empty"},
		{EventPullChanged, `"title"`, `"mergeable":"maybe","title"`, "data.mergeable must be"},
		{EventPullCommented, `"acme/shop"`, `"/"`, "data.repo must be owner/name"},
		{EventPullReviewed, `"approved"`, `"APPROVED"`, "data.review.state must be approved, changes_requested or commented"},
		{EventPullReviewed, `"approved"`, `"approved","comments":[{"id":"1","path":"","body":""}]`, "data.review.comments[0].path must not be empty"},
		{EventPullReviewed, `"approved"`, `"approved","comments":[` + strings.Repeat(`{"id":"1","path":"a","body":""},`, 500) + `{"id":"1","path":"a","body":""}]`,
			"data.review.comments has at most 500"},
		{EventPullReviewComment, `"path"`, `"line":-1,"path"`, "data.comment.line must be"},
		{EventPullReviewComment, `"author":{"login":"grace"},`, ``, "data.author is required"},
		{EventThreadResolved, `"t"`, `""`, "data.threadId must not be empty"},
		{EventPullChecks, `"abc"`, `""`, "data.sha must not be empty"},
		{EventPullChecks, `"lint"`, `""`, "data.failing[0].name must not be empty"},
		{EventPullChecks, `{"name":"lint"}`, strings.Repeat(`{"name":"x"},`, 200) + `{"name":"x"}`, "data.failing has at most 200"},
		{EventDocChanged, `"d"`, `""`, "data.id must not be empty"},
		{EventDocCommented, `"d"`, `""`, "data.doc must not be empty"},
	} {
		data := strings.Replace(good[tc.kind], tc.old, tc.with, 1)
		if _, err := ParseData(tc.kind, []byte(data), "data"); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s with %.60s: %v, which does not say %q", tc.kind, tc.with, err, tc.says)
		}
	}
}
