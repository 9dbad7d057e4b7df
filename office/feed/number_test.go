package feed

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

// This file tests what reads JSON in place against the standard library, and that a schema which cannot be followed is refused.

func TestNumbersAreReadExactly(t *testing.T) {
	for _, lit := range []string{
		"0", "-0", "0.0", "0e5", "1", "-1", "10", "100", "1.0", "1.5", "-1.50", "12e3", "12E+3", "12e-3", "12000e-3", "1.2e1", "1.25e1",
		"0.001e3", "0.0015e3",
		"9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"9223372036854775807.0", "9223372036854775808.0", "1e18", "1e19", "10e17", "-1e18", "100000000000000000000e-2",
		"0.0000000000000000001e19",
	} {
		if end, ok := scanNumber([]byte(lit), 0); !ok || end != len(lit) {
			t.Errorf("%s is no number", lit)
			continue
		}
		want, _ := new(big.Rat).SetString(lit)
		if got := integral([]byte(lit)); got != want.IsInt() {
			t.Errorf("%s is integral: %v", lit, got)
		}
		n, ok := parseInt([]byte(lit))
		if fits := want.IsInt() && want.Num().IsInt64(); ok != fits || ok && n != want.Num().Int64() {
			t.Errorf("%s is read as %d, %v", lit, n, ok)
		}
	}
	for _, lit := range []string{"", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x1", "NaN", "1_0"} {
		if end, ok := scanNumber([]byte(lit), 0); ok && end == len(lit) {
			t.Errorf("%s is a number", lit)
		}
	}
}

func TestMillicentsAreRoundedHalfUp(t *testing.T) {
	half := big.NewRat(1, 2)
	for _, lit := range []string{
		"0", "0.00001", "0.000014", "0.000015", "0.000005", "0.0000049", "0.00000499999999999999999999", "0.123455", "0.1234549", "1", "12.5",
		"0.07", "0.29", "1.005", "3e-6", "5e-6", "5E-06", "1e3", "123456789.123456789", "0.000000000000000000000000001",
	} {
		dollars, _ := new(big.Rat).SetString(lit)
		want := new(big.Rat).Add(new(big.Rat).Mul(dollars, big.NewRat(100_000, 1)), half)
		floor := new(big.Int).Div(want.Num(), want.Denom())
		if got, ok := millicents([]byte(lit)); !ok || got != floor.Int64() {
			t.Errorf("%s dollars are %d millicents, want %s", lit, got, floor)
		}
	}
}

func TestTheScannerTakesWhatTheStandardLibraryTakes(t *testing.T) {
	for _, in := range []string{
		``, ` `, `{}`, `[]`, `{ }`, `[ ]`, `{"a":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a" : [ 1 , 2 ] , "b":{}}`, `[1,]`,
		`[,1]`, `[1 2]`,
		`[`, `]`, `{`, `}`, `[}`, `{]`, `{"a":1]`, `[1}`, `"a"`, `"a`, `"\u00e9"`, `"\u00e"`, `"\u00eg"`, `"\q"`, `"\"`, "\"\x00\"", "\"\x1f\"",
		"\"\x7f\"", "\"\xff\"",
		`nul`, `null`, `nulll`, `true`, `tru`, `false`, `fals`, `TRUE`, `-`, `1 `, ` 1`, `1,`, `[1]x`, `{"a":1}{}`, "\ufeff{}", "[1]\n", "\v1",
		`"😀"`, `{"":""}`,
		strings.Repeat("[", 9999) + strings.Repeat("]", 9999), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
		strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
	} {
		if got, want := whole([]byte(in)), json.Valid([]byte(in)); got != want {
			t.Errorf("%.60q is JSON: %v, want %v", in, got, want)
		}
	}
}

func TestWhatIsSpecialInAStringIsSeenAtEveryPlace(t *testing.T) {
	for _, special := range []string{"\"", "\\", "\\n", "\x00", "\x1f", "\n", " ", "!", "#", "[", "]", "\x7f", "\x80", "\xff", "\xa2",
		"\xdc", "é"} {
		for before := range 20 {
			for after := range 10 {
				in := `["` + strings.Repeat("~", before) + special + strings.Repeat("\u007f", after) + `"]`
				if got, want := whole([]byte(in)), json.Valid([]byte(in)); got != want {
					t.Errorf("%q is JSON: %v, want %v", in, got, want)
				}
			}
		}
	}
}

func TestStringsAreReadAsTheStandardLibraryReadsThem(t *testing.T) {
	for _, in := range []string{
		`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u0000\u001f\u00e9\uFFFD"`, `"\ud83d\ude00"`, `"x\uD83D\uDE00y"`, `"é😀"`, `"\u2028<&>"`,
	} {
		token, end, ok := scanString([]byte(in), 0)
		got, valid := token.text()
		var want string
		if err := json.Unmarshal([]byte(in), &want); err != nil {
			t.Fatal(err)
		}
		if !ok || !valid || end != len(in) || got != want || !token.is(want) || token.is(want+"x") {
			t.Errorf("%s is read as %q", in, got)
		}
	}
	for _, in := range []string{`"\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ud83d\u"`, `"\ud83d\u00e9"`, `"\ude00\ud83d"`, "\"\xff\"",
		"\"\xff\\n\""} {
		token, _, ok := scanString([]byte(in), 0)
		if got, valid := token.text(); ok && valid {
			t.Errorf("%s is read as %q", in, got)
		}
	}
}

func TestASchemaThatClassifyCannotCheckIsRefused(t *testing.T) {
	for name, payload := range map[string]string{
		"a keyword that is not checked":       `{"type":"string","minLength":1}`,
		"a definition that there is not":      `{"$ref":"#/$defs/moon"}`,
		"variants that nothing tells apart":   `{"oneOf":[{"type":"object"}]}`,
		"variants of one name":                `{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}`,
		"a required member without a shape":   `{"type":"object","required":["a"]}`,
		"a fault further inside":              `{"type":"array","items":{"properties":{"a":{"pattern":"x"}}}}`,
		"a constant that is no string":        `{"const":7}`,
		"further members of a certain shape":  `{"type":"object","additionalProperties":{"type":"string"}}`,
		"a type that is neither one nor many": `{"type":{}}`,
	} {
		schema := `{"$defs":{"a":{"type":"object","required":["type"],"properties":{"type":{"const":"a"}}},"record":{"oneOf":[{"properties":{` +
			`"kind":{"const":"platform"},"source":{"const":"s"},"record_format":{"const":"f"},"record_type":{"const":"t"},` +
			`"payload":` + payload + `}}]}}}`
		if v, err := compileVariants([]byte(schema)); err == nil {
			t.Errorf("%s was taken: %v", name, v)
		}
	}
}
