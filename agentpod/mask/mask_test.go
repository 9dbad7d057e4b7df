package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hard is a value with everything in it that has to be escaped somewhere.
const hard = "q\"u\\o/t<e>&é\tx 7\U0001F511z"

func of(values ...string) *Masker { return New(nil, values, nil) }

// asText gives a value as a JSON string, in one of the ways of writing it.
func asText(t *testing.T, value string) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// spelled gives a JSON string with every character escaped by its code.
func spelled(value string, format string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range value {
		if r > 0xFFFF {
			r -= 0x10000
			fmt.Fprintf(&b, format+format, 0xD800+r>>10, 0xDC00+r&0x3FF)
			continue
		}
		fmt.Fprintf(&b, format, r)
	}
	b.WriteByte('"')
	return b.String()
}

func TestAValueIsMaskedInEveryFormThatJSONGivesIt(t *testing.T) {
	m := of(hard)
	plain := string(asText(t, hard))
	inner := string(asText(t, `{"key":`+plain+`}`))
	innermost := string(asText(t, `[`+inner+`]`))
	for name, test := range map[string]struct{ in, want string }{
		"as it is encoded": {`{"a":` + plain + `}`, `{"a":"***"}`},
		"as a name":        {`{` + plain + `:1}`, `{"***":1}`},
		"in a text":        {`["before ` + plain[1:len(plain)-1] + ` after"]`, `["before *** after"]`},
		"without escapes for pages": {
			`{"a":` + strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(plain) + `}`, `{"a":"***"}`},
		"with escaped slashes":    {`{"a":` + strings.ReplaceAll(plain, "/", `\/`) + `}`, `{"a":"***"}`},
		"all in codes":            {`{"a":` + spelled(hard, `\u%04x`) + `}`, `{"a":"***"}`},
		"all in codes of capital": {`{"a":` + spelled(hard, `\u%04X`) + `}`, `{"a":"***"}`},
		"in JSON inside of JSON":  {`{"a":` + inner + `}`, `{"a":"{\"key\":\"***\"}"}`},
		"two levels deep":         {`{"a":` + innermost + `}`, `{"a":"[\"{\\\"key\\\":\\\"***\\\"}\"]"}`},
		"twice":                   {`[` + plain + `,` + plain + `]`, `["***","***"]`},
		"side by side":            {`["` + plain[1:len(plain)-1] + plain[1:len(plain)-1] + `"]`, `["******"]`},
		"numbers, spaces and names stay": {
			`{"a" : 12345678901234567890.50, "b":` + plain + `, "c":{ "<":null}}`, `{"a" : 12345678901234567890.50, "b":"***", "c":{ "<":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(test.in)) {
				t.Fatalf("the test's own JSON is none: %s", test.in)
			}
			got := string(m.JSON([]byte(test.in)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if !json.Valid([]byte(got)) {
				t.Errorf("it is no JSON any more: %s", got)
			}
		})
	}
}

func TestWhatHasNoSecretComesBackItself(t *testing.T) {
	in := []byte(`{"text":"nothing \"here\" \u00e9\n","n":1e400,"deep":{"a":[true,false,null]}}`)
	got := of("some-secret").JSON(in)
	if &got[0] != &in[0] || len(got) != len(in) {
		t.Errorf("it was copied: %s", got)
	}
	if got := of("some-secret").Text("nothing here"); got != "nothing here" {
		t.Errorf("got %q", got)
	}
}

func TestOtherFormsOfAValue(t *testing.T) {
	const value = "pa ss:w/ö?rd+42"
	m := of(value)
	for name, in := range map[string]string{
		"as it is":             value,
		"base64":               base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 for URLs":      base64.RawURLEncoding.EncodeToString([]byte(value)),
		"hexadecimal":          hex.EncodeToString([]byte(value)),
		"capital hexadecimal":  strings.ToUpper(hex.EncodeToString([]byte(value))),
		"in a query":           url.QueryEscape(value),
		"in a path":            url.PathEscape(value),
		"in a URL's user info": url.UserPassword("x", value).String()[2:],
	} {
		got := m.Text("see " + in + " there")
		if strings.Contains(got, in) || !strings.Contains(got, Replacement) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for before := range 6 {
		text := strings.Repeat("u", before) + ":" + value + ":after"
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		got := m.Text("Authorization: Basic " + encoded)
		left := strings.SplitN(strings.TrimPrefix(got, "Authorization: Basic "), Replacement, 2)
		if len(left) != 2 {
			t.Errorf("with %d bytes before it: %q", before, got)
			continue
		}
		// What is left around it is at most a piece of a character of the value.
		if n := len(encoded) - len(left[0]) - len(left[1]); n < len(value)*4/3-2 {
			t.Errorf("with %d bytes before it only %d characters were masked: %q", before, n, got)
		}
	}
}

func TestAPrivateKeyIsMaskedLineByLine(t *testing.T) {
	key := pem(40)
	m := of(key)
	lines := strings.Split(strings.TrimSpace(key), "\n")
	for name, in := range map[string]string{
		"whole":              key,
		"in pieces":          lines[5] + "\nsome words\n" + lines[6],
		"indented":           "    " + strings.ReplaceAll(key, "\n", "\n    "),
		"with line ends":     strings.ReplaceAll(key, "\n", "\r\n"),
		"numbered":           "  12\t" + lines[3] + "\n  13\t" + lines[4],
		"in base64, wrapped": wrap(base64.StdEncoding.EncodeToString([]byte(key)), 76),
		"in base64, at 64":   wrap(base64.StdEncoding.EncodeToString([]byte(key)), 64),
		"in base64, in one":  base64.StdEncoding.EncodeToString([]byte(key)),
		"without its end":    key[:len(key)/2],
	} {
		for form, got := range map[string]string{
			"text": m.Text(in),
			"JSON": string(m.JSON(asText(t, in))),
		} {
			for _, line := range strings.Split(in, "\n") {
				line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "12\t"))
				if len(line) >= minLine && !armor(line) && line != "some words" && strings.Contains(got, line) {
					t.Errorf("%s, as %s: a line is left: %q", name, form, line)
				}
			}
		}
	}
	if got := m.Text("some words between -----BEGIN PUBLIC KEY----- and its end"); strings.Contains(got, Replacement) {
		t.Errorf("words were masked: %q", got)
	}
}

// pem makes something that looks like a private key and is none.
func pem(lines int) string {
	random := rand.New(rand.NewPCG(1, 2))
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var b strings.Builder
	b.WriteString("-----BEGIN EC PRIVATE KEY-----\n")
	for range lines {
		for range 64 {
			b.WriteByte(digits[random.IntN(len(digits))])
		}
		b.WriteByte('\n')
	}
	b.WriteString("-----END EC PRIVATE KEY-----\n")
	return b.String()
}

func wrap(text string, width int) string {
	var lines []string
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}
	return strings.Join(append(lines, text), "\n")
}

func TestValuesInsideOfAFileOfSettings(t *testing.T) {
	for name, test := range map[string]struct{ file, in string }{
		"a file of variables":       {"# ours\nexport API_KEY=\"s3cr3t-value\"\nPORT=80\n", "s3cr3t-value"},
		"YAML":                      {"user: ada\npassword: 'hunter2hunter2'\n", "hunter2hunter2"},
		"JSON":                      {`{"auths":{"registry.example.com":{"auth":"YWRhOnZlcnktc2VjcmV0"}}}`, "YWRhOnZlcnktc2VjcmV0"},
		"a key in JSON":             {`{"private_key":` + string(asTextOrDie(pem(3))) + `}`, strings.Split(pem(3), "\n")[2]},
		"npm's settings":            {"registry=https://registry.example.com/\n//registry.example.com/:_authToken=abcdefgh-1234\n", "abcdefgh-1234"},
		"netrc":                     {"machine git.example.com\nlogin ada\npassword correct-horse\n", "correct-horse"},
		"the password of a URL":     {"postgres://ada:swordfish@db.example.com/shop", "swordfish"},
		"a URL's password, escaped": {"postgres://ada:sw%20rdfish@db.example.com/shop", "sw rdfish"},
		"a URL in a variable":       {"A=b\nDATABASE_URL=postgres://ada:swordfish@db.example.com/shop\n", "swordfish"},
		"settings with blanks":      {"[default]\naws_thing = wJalrXUtnFEMI\n", "wJalrXUtnFEMI"},
	} {
		if got := of(test.file).Text("it is " + test.in + "!"); got != "it is ***!" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func asTextOrDie(value string) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func TestShortValuesAreNotMasked(t *testing.T) {
	m := of("abc", "12345", " x ", "", "\n", "abcdef")
	const text = "abc 12345 x"
	if got := m.Text(text); got != text {
		t.Errorf("got %q", got)
	}
	if got := m.Text("abcdef"); got != Replacement {
		t.Errorf("got %q", got)
	}
	if masked, short := m.Count(); masked != 1 || short != 5 {
		t.Errorf("%d masked, %d short", masked, short)
	}
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	dir := t.TempDir()
	// As the kubelet mounts a Secret: links to a link to a folder.
	mount := func(version string, files map[string]string) {
		t.Helper()
		folder := filepath.Join(dir, ".."+version)
		if err := os.Mkdir(folder, 0o750); err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Symlink(".."+version, filepath.Join(dir, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("one", map[string]string{"token": "first-token\n", "username": "ada-of-the-team", "known_hosts": "git.example.com ssh-ed25519 AAAAC3Nz"})
	single := filepath.Join(t.TempDir(), "single")
	m := New([]string{dir, single, filepath.Join(dir, "not-there")}, nil, nil)
	if got, want := m.Text("first-token second-token single-one"), "*** second-token single-one"; got != want {
		t.Errorf("at first: %q", got)
	}
	if got := m.Text("ada-of-the-team at git.example.com ssh-ed25519 AAAAC3Nz"); strings.Contains(got, Replacement) {
		t.Errorf("what is public was masked: %q", got)
	}
	mount("two", map[string]string{"token": "second-token\n", "more": "another-value"})
	if err := os.WriteFile(single, []byte("single-one"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new values are masked, and the old one still", func() bool {
		return m.Text("first-token second-token another-value single-one") == "*** *** *** ***"
	})
	if err := os.Remove(single); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a value whose file is gone stays masked", func() bool { return m.Text("single-one") == "***" })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestAFileThatCannotBeReadIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	m := New([]string{dir}, []string{"the-value"}, textLog(&log))
	for range 3 {
		time.Sleep(fresh)
		if got := m.Text("the-value"); got != Replacement {
			t.Errorf("got %q", got)
		}
	}
	if n := strings.Count(log.String(), "cannot be masked"); n != 1 {
		t.Errorf("told %d times: %s", n, &log)
	}
}

func TestOverlappingValuesLeaveNothing(t *testing.T) {
	m := of("abcdef", "defghi", "abcdefgh-long", "zabcde")
	for in, want := range map[string]string{
		"abcdefghi":        "***",
		"abcdefgh-long":    "***",
		"x abcdefgh-lon x": "x ***gh-lon x",
		"zabcdefghi":       "***",
		"abcdefabcdef":     "******",
	} {
		if got := m.Text(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestAnythingStaysJSONAndKeepsNoSecret(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alphabet := []rune("ab\"\\/\n\t<é€\U0001F600{}[]:,u0\x00'")
	word := func(n int) string {
		out := make([]rune, n)
		for i := range out {
			out[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(out)
	}
	for range 3000 {
		secret := word(6 + random.IntN(8))
		if len(strings.TrimSpace(secret)) < MinValue {
			continue
		}
		value := any(word(random.IntN(6)) + secret + word(random.IntN(6)))
		for range random.IntN(3) {
			inner, err := json.Marshal(map[string]any{"k": value})
			if err != nil {
				t.Fatal(err)
			}
			value = string(inner)
		}
		in, err := json.Marshal(map[string]any{"v": value, "n": 1.5})
		if err != nil {
			t.Fatal(err)
		}
		out := of(secret).JSON(in)
		var back map[string]any
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("%q in %s became %s: %v", secret, in, out, err)
		}
		text, _ := back["v"].(string)
		for {
			if strings.Contains(text, strings.TrimSpace(secret)) {
				t.Fatalf("%q in %s is left in %s", secret, in, out)
			}
			var inner struct{ K string }
			if json.Unmarshal([]byte(text), &inner) != nil || inner.K == "" {
				break
			}
			text = inner.K
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"a":"b"}`, "secret")
	f.Add(`{"a":"\ud83d\ude00\\u0041"}`, "\\u0041xx")
	f.Fuzz(func(t *testing.T, doc, secret string) {
		out := of(secret).JSON([]byte(doc))
		if json.Valid([]byte(doc)) && !json.Valid(out) {
			t.Errorf("%q with %q became %q", doc, secret, out)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 6))
	var values []string
	for i := range 40 {
		values = append(values, fmt.Sprintf("secret-%d-%x", i, random.Uint64()))
	}
	m := of(append(values, pem(40))...)
	line := strings.Repeat("The quick brown fox jumps over the lazy dog, then writes about it in a file.\n\tfunc main() {}\n", 1000)
	in, err := json.Marshal(map[string]string{"type": "tool_result", "content": line})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		m.JSON(in)
	}
}
