package feed

// This file reads numbers in the way of JSON, where 1200, 1200.0 and 1.2e3 are the same integer, without losing digits.

import (
	"bytes"
	"strconv"
	"strings"
)

// decimal is a number as digits with neither leading nor trailing zeros, times ten to the power of exp. Zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// maxExponent bounds exponents: every number beyond is as good as this one.
const maxExponent = 1 << 30

// parseDecimal reads a number that scanNumber has seen.
func parseDecimal(lit []byte) decimal {
	var d decimal
	if lit[0] == '-' {
		d.negative = true
		lit = lit[1:]
	}
	mantissa := lit
	if i := bytes.IndexAny(lit, "eE"); i >= 0 {
		mantissa = lit[:i]
		exp, err := strconv.Atoi(string(lit[i+1:]))
		if err != nil || exp > maxExponent || exp < -maxExponent {
			exp = maxExponent
			if lit[i+1] == '-' {
				exp = -maxExponent
			}
		}
		d.exp = exp
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	d.exp -= len(fraction)
	digits := string(whole) + string(fraction)
	trimmed := strings.TrimRight(digits, "0")
	d.exp += len(digits) - len(trimmed)
	if d.digits = strings.TrimLeft(trimmed, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

// integral says whether a number that scanNumber has seen has no fraction.
func integral(lit []byte) bool {
	if !bytes.ContainsAny(lit, ".eE") {
		return true
	}
	return parseDecimal(lit).exp >= 0
}

// parseInt reads an integer; ok is false where the number has a fraction or needs more than 64 bits.
func parseInt(lit []byte) (n int64, ok bool) {
	if bytes.ContainsAny(lit, ".eE") {
		d := parseDecimal(lit)
		if d.exp < 0 || len(d.digits)+d.exp > 19 {
			return 0, false
		}
		text := d.digits + strings.Repeat("0", d.exp)
		if d.negative {
			text = "-" + text
		}
		if d.digits == "" {
			return 0, true
		}
		lit = []byte(text)
	}
	n, err := strconv.ParseInt(string(lit), 10, 64)
	return n, err == nil
}

// millicents turns US dollars into millicents, half up; ok is false for negative or absurd amounts.
func millicents(lit []byte) (n int64, ok bool) {
	d := parseDecimal(lit)
	d.exp += 5 // a dollar has 100,000 of them
	places := len(d.digits) + d.exp
	if d.negative || places > 18 {
		return 0, false
	}
	if places < 0 || d.digits == "" {
		return 0, true
	}
	if d.exp >= 0 {
		n, _ = strconv.ParseInt("0"+d.digits+strings.Repeat("0", d.exp), 10, 64)
		return n, true
	}
	n, _ = strconv.ParseInt("0"+d.digits[:places], 10, 64)
	if d.digits[places] >= '5' {
		n++
	}
	return n, true
}
