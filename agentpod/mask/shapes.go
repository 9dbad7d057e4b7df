package mask

// This file has the shapes of well-known tokens: what is masked though nobody said that it is a secret.

import (
	"bytes"
	"regexp"
)

const (
	// maxShape is the most bytes of a token, maxBlock those of a private key.
	maxShape = 8 << 10
	maxBlock = 64 << 10
)

// shape is what tokens of one kind look like.
type shape struct {
	// words are what one begins with; at least keyLen bytes each.
	words []string
	// rest is held against a word and what follows. All of it is masked, or only its first group, if it has one, which has to have at
	// least as many bytes as least says.
	rest  *regexp.Regexp
	least int
	// inner says that it may begin in the middle of a word.
	inner bool
	// open fits a text that can become one, or a longer one; nil stands for bytes of tokens to the end. Where done fits, it can not. They
	// tell where a text that comes in pieces has to wait.
	open, done *regexp.Regexp
	most       int
}

// begins says whether one may begin at i, as far as what is before goes.
func (s *shape) begins(data []byte, i int, before byte) bool {
	if i > 0 {
		before = data[i-1]
	}
	return s.inner || !wordByte(before)
}

// match returns what to mask of a shape whose word stands at i, where it may begin.
func (s *shape) match(data []byte, i int) (span, bool) {
	found := s.rest.FindSubmatchIndex(data[i:min(len(data), i+s.most)])
	switch {
	case found == nil:
		return span{}, false
	case len(found) > 2:
		return span{i + found[2], i + found[3]}, found[3]-found[2] >= s.least
	}
	return span{i, i + found[1]}, true
}

// unfinished says whether what stands at i may become one, or a longer one, with more text. run is where the last run of bytes of tokens
// begins.
func (s *shape) unfinished(data []byte, i int, before byte, run int) bool {
	if !s.begins(data, i, before) {
		return false
	}
	if s.open != nil {
		return s.open.Match(data[i:]) && (s.done == nil || !s.done.Match(data[i:]))
	}
	return i >= run
}

// lastRun returns where the bytes of tokens begin that data ends with.
func lastRun(data []byte) int {
	for i := len(data); i > 0; i-- {
		if !tokenByte(data[i-1]) {
			return i
		}
	}
	return 0
}

func wordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
}

func tokenByte(b byte) bool { return wordByte(b) || bytes.IndexByte([]byte("-.~+/="), b) >= 0 }

func token(rest string, words ...string) shape {
	return shape{words: words, rest: regexp.MustCompile(`^(?:` + rest + `)`), most: maxShape}
}

// shapes are the tokens that are masked wherever they are. Each is as narrow as its maker's own description allows, so that ordinary text
// has none; see the tests for what is left alone.
var shapes = []shape{
	// AWS: the id of an access key, and a secret key beside its name.
	token(`(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`, "AKIA", "ASIA", "ABIA", "ACCA"),
	{
		words: []string{
			"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey",
			"aws_session_token", "AWS_SESSION_TOKEN", "SessionToken",
		},
		rest:  regexp.MustCompile(`^\w+["']?(?:[ \t]*[=:,][ \t]*|[ \t]+)["']?([A-Za-z0-9/+=]{40,})`),
		open:  regexp.MustCompile(`^\w+["']?[ \t]*[=:,]?[ \t]*["']?[A-Za-z0-9/+=]*$`),
		inner: true, most: maxShape,
	},
	// GitHub, GitLab.
	token(`gh[pousr]_[A-Za-z0-9]{36,255}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	token(`github_pat_[A-Za-z0-9_]{22,255}`, "github_pat_"),
	token(`gl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|imt|agent|oas|ffct|wt)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)*`,
		"glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-", "gloas-", "glffct-", "glwt-"),
	// Slack: tokens and webhooks.
	token(`xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}`, "xoxa", "xoxb", "xoxe", "xoxo", "xoxp", "xoxr", "xoxs"),
	token(`xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]+`, "xapp-"),
	token(`hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})`, "hooks.slack.com/"),
	// Makers of models.
	token(`sk-ant-[a-z]{2,10}\d{2}-[A-Za-z0-9_-]{20,}`, "sk-ant-"),
	token(`sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}`, "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"),
	token(`sk-[A-Za-z0-9]{48}\b|sk-[0-9a-f]{32}\b|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|sk-or-v1-[0-9a-f]{64}`, "sk-"),
	token(`hf_[A-Za-z]{34}\b`, "hf_"),
	token(`AIza[A-Za-z0-9_-]{35}`, "AIza"),
	token(`ya29\.[A-Za-z0-9_-]{20,}`, "ya29."),
	token(`GOCSPX-[A-Za-z0-9_-]{28}`, "GOCSPX-"),
	// Registries of packages and images.
	token(`npm_[A-Za-z0-9]{36}\b`, "npm_"),
	token(`pypi-AgE[A-Za-z0-9_-]{50,}`, "pypi-AgE"),
	token(`dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,}`, "dckr_pat_", "dckr_oat_"),
	token(`rubygems_[0-9a-f]{48}\b`, "rubygems_"),
	// Others that developers have at hand.
	token(`(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}`, "sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"),
	token(`whsec_[A-Za-z0-9+/]{24,}=*`, "whsec_"),
	token(`SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`, "SG."),
	token(`do[opr]_v1_[0-9a-f]{64}\b`, "dop_v1_", "doo_v1_", "dor_v1_"),
	token(`hv[sbr]\.[A-Za-z0-9_-]{24,}`, "hvs.", "hvb.", "hvr."),
	token(`lin_(?:api|oauth)_[A-Za-z0-9]{40,}`, "lin_api_", "lin_oauth_"),
	token(`ATATT3[A-Za-z0-9_=-]{50,}`, "ATATT3"),
	token(`glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/=]{32,}`, "glsa_", "glc_"),
	token(`sntry[su]_[A-Za-z0-9+/=_-]{40,}`, "sntrys_", "sntryu_"),
	token(`dapi[0-9a-f]{32}(?:-\d)?\b`, "dapi"),
	token(`shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b`, "shpat_", "shpca_", "shppa_", "shpss_"),
	token(`AGE-SECRET-KEY-1[0-9A-Z]{58}\b`, "AGE-SECRET-KEY-1"),
	token(`tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}`, "tskey-"),
	// A JSON Web Token: header, claims, signature.
	token(`ey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}`, "eyJ", "eyA"),
	// What HTTP calls a bearer token, and a password in a URL. What is a variable of some language is no value.
	{
		words: []string{"Bearer ", "bearer "}, least: 20,
		rest: regexp.MustCompile(`^[Bb]earer ([A-Za-z0-9._~+/-]*[0-9][A-Za-z0-9._~+/-]*=*)`),
		open: regexp.MustCompile(`^[Bb]earer [A-Za-z0-9._~+/=-]*$`),
		most: maxShape,
	},
	{
		words: []string{"://"}, inner: true,
		rest: regexp.MustCompile(`^://[^\s/:@"'<>\\]*:([^\s/:@"'<>\\${}%*][^\s/:@"'<>\\]{2,})@`),
		open: regexp.MustCompile(`^://[^\s/:@"'<>\\]*(?::[^\s/:@"'<>\\]*)?$`),
		most: maxShape,
	},
	// A private key, also one whose end was cut off.
	{
		words: []string{"-----BEGIN "}, inner: true,
		rest: regexp.MustCompile(`^-----BEGIN ` + keyName + keyHeaders +
			`(?:[\s\\]*[A-Za-z0-9+/=]{16,}[A-Za-z0-9+/=\s\\]*?-----END ` + keyName + `|` +
			`(?:\s+[A-Za-z0-9+/=]{16,})+)`),
		open: regexp.MustCompile(`^-----BEGIN (?:[A-Z0-9 ]*-{0,5}|[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\:,.()-]*)$`),
		done: regexp.MustCompile(`-----END [A-Z0-9 ]*-----`),
		most: maxBlock,
	},
}

const (
	keyName    = `(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----`
	keyHeaders = `(?:\s+(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset): [^\n]{0,120}){0,8}`
)
