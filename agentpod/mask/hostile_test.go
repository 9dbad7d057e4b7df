package mask

// This file tests what is made to be slow to mask, and what was cut in the middle of a secret.

import (
	"strings"
	"testing"
	"time"
)

// hostile are texts made of the beginnings of tokens.
var hostile = []string{
	"eyJ-", "eyJa.", "sk-ant-ab00-", "glc_a/", "ghp_-", "://", "x://a:bcd", "-----BEGIN PRIVATE KEY-----\\n", "-----BEGIN ",
	"-----BEGIN PRIVATE KEY-----\nComment: ", "Bearer a", "\\u0061", "\\\\", "sntrys_-", "hooks.slack.com/services/", "ATATT3-",
	"eyJaaaaaaaaaaaa.eyJaaaaaaaaaaaa-",
}

func TestNoTextTakesLongToMask(t *testing.T) {
	// Without a bound each of the bad ones takes much longer.
	const size, most = 64 << 10, 10 * time.Second
	m := New(nil, []string{"the-secret-of-this-test"}, nil)
	for _, unit := range hostile {
		t.Run(unit, func(t *testing.T) {
			text := strings.Repeat(unit, size/len(unit))
			began := time.Now()
			m.JSON([]byte(`{"text":"` + text + `"}`))
			if took := time.Since(began); took > most {
				t.Errorf("masking it as JSON took %s", took)
			}
			began = time.Now()
			s := m.Stream()
			for at := 0; at+64 <= 8<<10; at += 64 {
				s.Write(text[at : at+64])
			}
			s.Write(" the end")
			if took := time.Since(began); took > most {
				t.Errorf("masking it in pieces took %s", took)
			}
		})
	}
}

func TestATokenBehindManyBeginningsIsMasked(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	got := New(nil, nil, nil).Text(strings.Repeat("ghp_- ", 100) + token)
	if strings.Contains(got, token) {
		t.Errorf("the token is still there: %.80s…", got)
	}
}

func TestWhatWasCutInTheMiddleOfASecretIsMasked(t *testing.T) {
	m := New(nil, []string{"correct-horse-battery", `quo"ted-secret-value`}, nil)
	for name, c := range map[string]struct{ in, want string }{
		"a value":                         {"key correct-horse-bat…", "key ***…"},
		"the beginning of a token":        {"key ghp_a1B2a1B2a1B2…", "key ***…"},
		"a text that says nothing secret": {"this is correct…", "this is ***…"},
		"only a letter or two":            {"this is co…", "this is co…"},
		"a text that was not cut":         {"key correct-horse-bat", "key correct-horse-bat"},
		"a cut that is no secret's":       {"see https://example.com…", "see https://example.com…"},
		"a value and behind it a cut":     {"correct-horse-battery is long…", "*** is long…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := m.Text(c.in); got != c.want {
				t.Errorf("Text(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
	if got := string(m.JSON([]byte(`{"a":"x quo\"ted-sec…","b":"correct-horse…"}`))); got != `{"a":"x ***…","b":"***…"}` {
		t.Errorf("JSON gives %s", got)
	}
}
