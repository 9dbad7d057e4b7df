package mask

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
)

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// chars gives n characters of an alphabet, always the same.
func chars(alphabet string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte(alphabet[(i*7+i/5+3)%len(alphabet)])
	}
	return b.String()
}

const (
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	digits = "0123456789"
	alnum  = upper + lower + digits
	hexes  = "0123456789abcdef"
)

// tokens are made up; none was ever one.
func tokens() map[string]string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return map[string]string{
		"AWS access key":          "AKIA" + chars("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
		"AWS temporary key":       "ASIA" + chars("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
		"GitHub personal token":   "ghp_" + chars(alnum, 36),
		"GitHub app token":        "ghs_" + chars(alnum, 36),
		"GitHub fine-grained":     "github_pat_" + chars(alnum, 22) + "_" + chars(alnum, 59),
		"GitLab personal token":   "glpat-" + chars(alnum, 20),
		"GitLab routable token":   "glpat-" + chars(alnum, 27) + ".01." + chars(alnum, 9),
		"GitLab runner token":     "glrt-" + chars(alnum, 20),
		"Slack bot token":         "xoxb-" + chars(digits, 12) + "-" + chars(digits, 12) + "-" + chars(alnum, 24),
		"Slack app token":         "xapp-1-" + chars(upper, 10) + "-" + chars(digits, 12) + "-" + chars(hexes, 64),
		"Anthropic key":           "sk-ant-api03-" + chars(alnum+"_-", 93) + "AA",
		"Anthropic login":         "sk-ant-oat01-" + chars(alnum, 80),
		"OpenAI project key":      "sk-proj-" + chars(alnum+"_-", 74) + "T3BlbkFJ" + chars(alnum, 20),
		"OpenAI key":              "sk-" + chars(alnum, 20) + "T3BlbkFJ" + chars(alnum, 20),
		"OpenRouter key":          "sk-or-v1-" + chars(hexes, 64),
		"Hugging Face token":      "hf_" + chars(upper+lower, 34),
		"Google API key":          "AIza" + chars(alnum, 35),
		"Google access token":     "ya29." + chars(alnum+"_-", 60),
		"npm token":               "npm_" + chars(alnum, 36),
		"PyPI token":              "pypi-AgEIcHlwaS5vcmc" + chars(alnum, 60),
		"Docker Hub token":        "dckr_pat_" + chars(alnum, 27),
		"Stripe key":              "sk_live_" + chars(alnum, 24),
		"SendGrid key":            "SG." + chars(alnum, 22) + "." + chars(alnum, 43),
		"DigitalOcean token":      "dop_v1_" + chars(hexes, 64),
		"Vault token":             "hvs." + chars(alnum, 24),
		"Linear key":              "lin_api_" + chars(alnum, 40),
		"Atlassian token":         "ATATT3" + chars(alnum, 180) + "=" + chars(digits, 8),
		"Databricks token":        "dapi" + chars(hexes, 32),
		"JSON Web Token":          part(`{"alg":"RS256","kid":"k1"}`) + "." + part(`{"sub":"system:serviceaccount:a:b"}`) + "." + chars(alnum+"_-", 86),
		"private key":             strings.TrimSpace(pem(4)),
		"private key with header": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A0B\n\n" + chars(alnum, 64) + "\n-----END RSA PRIVATE KEY-----",
	}
}

func TestShapesOfTokensAreMaskedWhereverTheyAre(t *testing.T) {
	m := of()
	for name, token := range tokens() {
		for where, format := range map[string]string{
			"alone": "%s", "in words": "use %s, please.", "quoted": `TOKEN="%s"`, "in a URL": "https://example.com/?t=%s&x=1",
			"on a line": "first\n%s\nlast", "in JSON": `{"token": "%s"}`, "in brackets": "(%s)",
		} {
			in := fmt.Sprintf(format, token)
			want := fmt.Sprintf(format, Replacement)
			if got := m.Text(in); got != want {
				t.Errorf("%s, %s: %q", name, where, got)
			}
			encoded := asText(t, in)
			if got := string(m.JSON(encoded)); got != string(asText(t, want)) {
				t.Errorf("%s, %s, in JSON: %s", name, where, got)
			}
			twice := asText(t, string(encoded))
			if got := string(m.JSON(twice)); got != string(asText(t, string(asText(t, want)))) {
				t.Errorf("%s, %s, in JSON inside of JSON: %s", name, where, got)
			}
		}
	}
}

func TestOnlyTheSecretPartOfWhatHasANameIsMasked(t *testing.T) {
	m := of()
	key := chars(alnum+"+/", 40)
	for in, want := range map[string]string{
		"aws_secret_access_key = " + key:                               "aws_secret_access_key = ***",
		"export AWS_SECRET_ACCESS_KEY='" + key + "'":                   "export AWS_SECRET_ACCESS_KEY='***'",
		`{"SecretAccessKey": "` + key + `"}`:                           `{"SecretAccessKey": "***"}`,
		"aws configure set aws_secret_access_key " + key:               "aws configure set aws_secret_access_key ***",
		"Authorization: Bearer " + chars(alnum, 43):                    "Authorization: Bearer ***",
		"curl -H 'authorization: bearer " + chars(alnum, 43):           "curl -H 'authorization: bearer ***",
		"https://ada:swordfish@git.example.com/a/b.git":                "https://ada:***@git.example.com/a/b.git",
		"git clone https://:swordfish@git.example.com":                 "git clone https://:***@git.example.com",
		"redis://:swordfish@cache:6379/0":                              "redis://:***@cache:6379/0",
		"https://hooks.slack.com/services/T01/B02/" + chars(alnum, 24): "https://hooks.slack.com/services/***",
	} {
		if got := m.Text(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	m := of()
	for _, text := range []string{
		"risk-assessment-of-the-project and task-list-number-one-hundred-and-twenty-three",
		"the sk- prefix, ghp_ and glpat- are those of tokens; AKIA too",
		"sk-learn, sk-estimator-with-a-rather-long-name-of-words",
		"ghp_tooshort npm_install_everything_now hf_transformers_are_fun_and_long_words",
		"commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"uuid 123e4567-e89b-12d3-a456-426614174000, sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"eyJust kidding.eyJoy.ok eyJhbGciOiJub25lIn0 alone is a header",
		"-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2VydGlmaWNhdGVPZk5vYm9keQ\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
		"a private key begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----, says the page",
		`if strings.Contains(s, "-----BEGIN RSA PRIVATE KEY-----") { return errors.New("no keys here, please") }`,
		"Bearer of good news, and bearer tokens-are-described-in-the-next-chapter of the book",
		"Authorization: Bearer $TOKEN, Bearer ${GITHUB_TOKEN}, Bearer <token>",
		"http://localhost:8080/path, https://example.com:8443/@ada/post, ssh://git@example.com:22/a/b.git",
		"https://user:$PASSWORD@example.com https://user:${PASS}@example.com https://user:<password>@example.com https://%s:%s@example.com",
		"git@github.com:owner/name.git, mailto:ada@example.com, 12:30@noon",
		"aws_secret_access_key is what it is called; set AWS_SECRET_ACCESS_KEY=$SECRET, SecretAccessKey: !Ref Key",
		"xoxo, dear; xoxb is a prefix; SG.13 and SG.team.member",
		"AIzawa is a town, ya29. is not, dapi and dapifoo neither, hvs. too",
		"const tokenURL = \"https://gitlab.example.com/oauth/token\"; // glrt is a runner's",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
		`{"type":"assistant","message":{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","usage":{"input_tokens":1234567890123}}}`,
		`{"tool_use_id":"toolu_01A09q90qw90lq917835lq9","session_id":"0b7e2d1c-1111-4222-8333-444455556666"}`,
	} {
		if got := m.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		encoded := asText(t, text)
		if got := m.JSON(encoded); string(got) != string(encoded) {
			t.Errorf("in JSON %s became %s", encoded, got)
		}
	}
}
