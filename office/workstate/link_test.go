package workstate

import (
	"slices"
	"testing"
)

func TestAPullRequestBelongsToTheTicketThatItNames(t *testing.T) {
	acme := Keys{Prefixes: []string{"ACME", "OPS"}}
	none := Keys{}
	host := Keys{Prefixes: []string{"acme/shop"}, Known: func(key string) bool { return key == "acme/shop#12" }}
	two := Keys{Prefixes: []string{"acme/shop", "acme/web"}, Known: func(string) bool { return true }}
	for name, tc := range map[string]struct {
		pull PullText
		keys Keys
		want string
	}{
		"by the branch, in any case":                      {PullText{Head: "feature/acme-12-login"}, acme, "ACME-12"},
		"by the branch, anywhere in it":                   {PullText{Head: "ada_x/fix-for-ACME-12"}, acme, "ACME-12"},
		"the branch goes before the title":                {PullText{Head: "acme-1", Title: "ACME-2: x", Body: "closes ACME-3"}, acme, "ACME-1"},
		"the title goes before the body":                  {PullText{Head: "main", Title: "ACME-2: x", Body: "closes ACME-3"}, acme, "ACME-2"},
		"a closing word in the body":                      {PullText{Body: "Some text.\n\nFixes: ACME-3, and more"}, acme, "ACME-3"},
		"a closing word with a link":                      {PullText{Body: "resolves https://tracker.example.com/browse/ACME-3."}, acme, "ACME-3"},
		"a closing word with a link in Markdown":          {PullText{Body: "Closed [ACME-3](https://tracker.example.com/browse/ACME-3)"}, acme, "ACME-3"},
		"the first closing word that has a key":           {PullText{Body: "fixes the build. closes OPS-7"}, acme, "OPS-7"},
		"a mention links nothing":                         {PullText{Body: "see ACME-3, as in ACME-4"}, acme, ""},
		"a key at some distance of a closing word is one": {PullText{Body: "this closes the gap of ACME-3"}, acme, ""},
		"a closing word inside of another word":           {PullText{Body: "prefixes ACME-3"}, acme, ""},
		"of several prefixes a known one is preferred":    {PullText{Head: "utf-8-in-acme-5"}, acme, "ACME-5"},
		"an unknown prefix, where others are known":       {PullText{Head: "feature/utf-8", Title: "UTF-8"}, acme, ""},
		"an unknown prefix, where none is known":          {PullText{Head: "feature/acme-12-x"}, none, "ACME-12"},
		"an unknown prefix in a title":                    {PullText{Title: "[ACME-12] x"}, none, "ACME-12"},
		"small letters in a title, where none is known":   {PullText{Title: "bump lib-2"}, none, ""},
		"a number in a branch, where none is known":       {PullText{Head: "bump-lib-2"}, none, ""},
		"a part of a longer word":                         {PullText{Title: "XACME-12 ACME-12x ACME-12_3"}, acme, ""},
		"a number that begins with zero":                  {PullText{Title: "ACME-012"}, acme, ""},
		"a ticket of a code host by its whole key":        {PullText{Title: "Mend acme/shop#12"}, host, "acme/shop#12"},
		"a ticket of a code host by its number":           {PullText{Repo: "acme/shop", Body: "closes #12"}, host, "acme/shop#12"},
		"by its number, where one repository has tickets": {PullText{Body: "closes #12"}, host, "acme/shop#12"},
		"by its number, where two repositories have some": {PullText{Body: "closes #12"}, two, ""},
		"by its number, of a pull request's repository":   {PullText{Repo: "acme/web", Body: "closes #12"}, two, "acme/web#12"},
		"by its link":                           {PullText{Body: "fixes https://git.example.com/acme/shop/issues/12"}, host, "acme/shop#12"},
		"a link to a pull request is no ticket": {PullText{Body: "fixes https://git.example.com/acme/shop/pull/12"}, host, ""},
		"a number that is no known ticket":      {PullText{Title: "Merge #13", Body: "fixes #14"}, host, ""},
		"nothing at all":                        {PullText{}, acme, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TicketOf(tc.pull, tc.keys); got != tc.want {
				t.Errorf("it belongs to %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatATextMentions(t *testing.T) {
	text := "Like ACME-12 (see https://git.example.com/acme/shop/pull/7, and ACME-12 again), acme/web#3; not acme-9, nor #5.\n" +
		"The page: https://docs.example.com/d/abc."
	var got []string
	for _, m := range Mentions(text) {
		got = append(got, m.Text)
	}
	want := []string{"ACME-12", "https://git.example.com/acme/shop/pull/7", "acme/web#3", "https://docs.example.com/d/abc"}
	if !slices.Equal(got, want) {
		t.Errorf("it mentions %q, want %q", got, want)
	}
	long := ""
	for range 100 {
		long += "ACME-1" + string(rune('0'+len(long)%7)) + " "
	}
	if n := len(Mentions(long)); n > mostMentions {
		t.Errorf("%d names were read from one text", n)
	}
}
