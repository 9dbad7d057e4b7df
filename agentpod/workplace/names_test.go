package workplace

import (
	"strings"
	"testing"
)

func TestBranchesAreNamedAfterPersonAndTitle(t *testing.T) {
	const key = "0123456789abcdef"
	for name, test := range map[string]struct{ handle, title, want string }{
		"a title":                  {"ada", "Fix the login page", "bullpen/ada/fix-the-login-page-01234567"},
		"signs":                    {"ada", "  [BUG] ~^: don't..crash? ", "bullpen/ada/bug-don-t-crash-01234567"},
		"another script":           {"ada", "修正", "bullpen/ada/01234567"},
		"no title":                 {"ada", "", "bullpen/ada/01234567"},
		"a long title":             {"ada", "Rewrite the whole of the importer so that it reads everything", "bullpen/ada/rewrite-the-whole-of-the-importer-so-01234567"},
		"a long word":              {"ada", strings.Repeat("x", 100), "bullpen/ada/" + strings.Repeat("x", maxSlug) + "-01234567"},
		"a handle of many signs":   {"A.da_1..lock", "x", "bullpen/a-da-1-lock/x-01234567"},
		"a handle of nothing else": {"..", "x", "bullpen/agent/x-01234567"},
	} {
		t.Run(name, func(t *testing.T) {
			got := branchName(test.handle, test.title, key)
			if got != test.want {
				t.Errorf("got %s", got)
			}
			if !isBranchOf(got, key) || isBranchOf(got, "fedcba9876543210") || isOthers(got, key) || !isOthers(got, "fedcba9876543210") {
				t.Error("it is not known as the item's")
			}
		})
	}
	for _, other := range []string{"main", "fix-01234567", "bullpen/ada/x01234567", "bullpen/ada/01234567-x"} {
		if isBranchOf(other, key) {
			t.Errorf("%s is taken for the item's", other)
		}
	}
}

func TestFoldersAreSafeWhateverARepositoryIsCalled(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"shop", "Shop", "a_b-c1", "", ".", "..", "../x", "a/b", "a.git", "a\x00b", "_x", strings.Repeat("x", 101)} {
		folder := folderName(name)
		if strings.ContainsAny(folder, "/\x00.") || folder == "" || len(folder) > 100 {
			t.Errorf("%q has the folder %q", name, folder)
		}
		if other, taken := seen[folder]; taken {
			t.Errorf("%q and %q share the folder %s", name, other, folder)
		}
		seen[folder] = name
	}
	if folderName("shop") != "shop" {
		t.Error("a plain name is not its own folder")
	}
}
