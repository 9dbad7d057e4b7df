package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/pki"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	names = []string{"bullpen-office.bullpen.svc", "127.0.0.1"}
)

func plan(t *testing.T, data map[string][]byte, now time.Time) (map[string][]byte, time.Time, bool) {
	t.Helper()
	planned, next, changed, err := pki.Plan(data, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return planned, next, changed
}

// trusts says whether somebody who trusts the bundle accepts the serving certificate at now, for every name.
func trusts(t *testing.T, bundle, certPEM []byte, now time.Time) bool {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle holds no certificate")
	}
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

func authorities(bundle []byte) int {
	n := 0
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		n++
	}
	return n
}

func TestPlanMakesWhatIsMissing(t *testing.T) {
	whole, _, changed := plan(t, nil, start)
	if !changed {
		t.Fatal("nothing was planned for an empty Secret")
	}
	if _, err := tls.X509KeyPair(whole[pki.CertKey], whole[pki.PrivateKeyKey]); err != nil {
		t.Fatalf("certificate and key do not fit: %v", err)
	}
	if !trusts(t, whole[pki.BundleKey], whole[pki.CertKey], start) {
		t.Fatal("the bundle does not vouch for the certificate")
	}
	damaged := func(key string, value []byte) map[string][]byte {
		data := maps.Clone(whole)
		data[key] = value
		return data
	}
	tests := map[string]struct {
		data     map[string][]byte
		sameLeaf bool
		sameCA   bool
	}{
		"a whole Secret stays as it is":                     {data: whole, sameLeaf: true, sameCA: true},
		"without the serving key, a new certificate":        {data: damaged(pki.PrivateKeyKey, nil), sameCA: true},
		"a damaged certificate is made anew":                {data: damaged(pki.CertKey, []byte("no certificate")), sameCA: true},
		"without the CA's key, a new CA and certificate":    {data: damaged(pki.SignerKey, nil)},
		"with a damaged CA's key, a new CA and certificate": {data: damaged(pki.SignerKey, []byte("no key"))},
		"without a bundle, a new CA and certificate":        {data: damaged(pki.BundleKey, nil)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, changed := plan(t, test.data, start.Add(time.Minute))
			if same := slices.Equal(got[pki.CertKey], whole[pki.CertKey]); same != test.sameLeaf {
				t.Errorf("the certificate is the same: %v", same)
			}
			if same := slices.Equal(got[pki.SignerKey], whole[pki.SignerKey]); same != test.sameCA {
				t.Errorf("the CA is the same: %v", same)
			}
			if changed == (test.sameLeaf && test.sameCA) {
				t.Errorf("changed is %v", changed)
			}
			if !trusts(t, got[pki.BundleKey], got[pki.CertKey], start) {
				t.Error("the bundle does not vouch for the certificate")
			}
		})
	}
}

func TestPlanServesOtherNamesAtOnce(t *testing.T) {
	whole, _, _ := plan(t, nil, start)
	got, _, changed, err := pki.Plan(whole, []string{"office.example.com"}, start)
	if err != nil {
		t.Fatal(err)
	}
	if !changed || slices.Equal(got[pki.CertKey], whole[pki.CertKey]) {
		t.Fatal("the certificate still has the old names")
	}
	same, _, changed, err := pki.Plan(whole, []string{names[1], names[0], names[0]}, start)
	if err != nil {
		t.Fatal(err)
	}
	if changed || !slices.Equal(same[pki.CertKey], whole[pki.CertKey]) {
		t.Fatal("the order of names matters")
	}
}

// TestPlanOverTheYears follows a Secret over two lives of a CA. Agents are slow: they hold a bundle that is up to Settle old.
// At no step may one of them refuse the office.
func TestPlanOverTheYears(t *testing.T) {
	data, next, _ := plan(t, nil, start)
	agents, signers, leaves, most := data[pki.BundleKey], map[string]bool{}, map[string]bool{}, 0
	for now := start; now.Before(start.Add(19 * 365 * 24 * time.Hour)); {
		if !next.After(now) {
			t.Fatalf("at %s the next step is not in the future: %s", now, next)
		}
		now = next
		var changed bool
		data, next, changed = plan(t, data, now)
		if !changed {
			t.Fatalf("nothing happened at %s, the time of the step", now)
		}
		if !trusts(t, agents, data[pki.CertKey], now) {
			t.Fatalf("at %s an agent with the bundle before refuses the office", now)
		}
		if !trusts(t, data[pki.BundleKey], data[pki.CertKey], now) {
			t.Fatalf("at %s an agent with the new bundle refuses the office", now)
		}
		agents = data[pki.BundleKey]
		signers[string(data[pki.SignerKey])], leaves[string(data[pki.CertKey])] = true, true
		most = max(most, authorities(agents))
	}
	if len(signers) != 3 || len(leaves) < 100 {
		t.Errorf("in nineteen years there were %d CAs and %d certificates", len(signers), len(leaves))
	}
	if most > 2 {
		t.Errorf("the bundle grew to %d CAs", most)
	}
	if n := authorities(data[pki.BundleKey]); n != 1 {
		t.Errorf("the bundle still holds %d CAs at the end", n)
	}
}
