// Package pki plans the office's certificates: a CA of the operator's own, and a serving certificate signed by it.
//
// Plan is a function of what a Secret holds, the names to serve and the time; the caller keeps what it returns. A CA is
// replaced by overlap: the new one is first only trusted (Settle long, so that every agent has it), then it signs, and the old
// one leaves the bundle when no certificate of it is served any more. So agents and office trust each other at every moment.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"slices"
	"time"
)

// Keys of the Secret.
const (
	// BundleKey has the certificates of every CA to trust, PEM, the signing one first.
	BundleKey = "ca.crt"
	// SignerKey is the private key of the signing CA; NextKey that of the CA that will sign next, if there is one.
	SignerKey = "ca.key"
	NextKey   = "ca-next.key"
	// CertKey and PrivateKeyKey are the serving certificate and its private key.
	CertKey       = "tls.crt"
	PrivateKeyKey = "tls.key"
)

// Lives of certificates.
const (
	CALife   = 10 * 365 * 24 * time.Hour
	LeafLife = 90 * 24 * time.Hour
	// Settle is how long a new CA is trusted before it signs.
	Settle = 24 * time.Hour
	// backdate lets clocks differ.
	backdate = time.Hour
)

// Plan says what the Secret should hold at now for an office that is reached under names (DNS names and IP addresses), when to
// plan again at the latest, and whether it differs from data. Data that is missing, damaged or expired is made anew. An error
// means that the machine could not make keys.
func Plan(data map[string][]byte, names []string, now time.Time) (planned map[string][]byte, next time.Time, changed bool, err error) {
	s := parse(data, now)
	if err := s.planCA(now); err != nil {
		return nil, time.Time{}, false, err
	}
	if err := s.planLeaf(names, now); err != nil {
		return nil, time.Time{}, false, err
	}
	planned = s.encode()
	return planned, s.nextStep(), !maps.EqualFunc(data, planned, bytes.Equal), nil
}

// pair is a certificate with its private key and both in PEM.
type pair struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	certPEM []byte
	keyPEM  []byte
}

type state struct {
	signer, next, leaf *pair
	// old CAs are still trusted and sign no more.
	old []*x509.Certificate
}

// parse reads what is usable; the rest counts as missing.
func parse(data map[string][]byte, now time.Time) *state {
	s := &state{}
	for _, cert := range certificates(data[BundleKey]) {
		if !now.Before(cert.NotAfter) {
			continue
		}
		switch {
		case s.signer == nil && matches(cert, data[SignerKey]):
			s.signer = readPair(cert, data[SignerKey])
		case s.next == nil && matches(cert, data[NextKey]):
			s.next = readPair(cert, data[NextKey])
		default:
			s.old = append(s.old, cert)
		}
	}
	if leaf := certificates(data[CertKey]); len(leaf) > 0 && matches(leaf[0], data[PrivateKeyKey]) {
		s.leaf = readPair(leaf[0], data[PrivateKeyKey])
	}
	return s
}

func (s *state) planCA(now time.Time) (err error) {
	if s.signer == nil {
		s.signer, s.next = s.next, nil
	}
	if s.signer == nil {
		if s.signer, err = newCA(now); err != nil {
			return err
		}
	}
	if s.next == nil && !now.Before(renewAt(s.signer.cert)) {
		if s.next, err = newCA(now); err != nil {
			return err
		}
	}
	if s.next != nil && !now.Before(issuedAt(s.next.cert).Add(Settle)) {
		s.old = append(s.old, s.signer.cert)
		s.signer, s.next = s.next, nil
	}
	return nil
}

func (s *state) planLeaf(names []string, now time.Time) (err error) {
	signed := s.leaf != nil && s.leaf.cert.CheckSignatureFrom(s.signer.cert) == nil
	if signed && now.Before(renewAt(s.leaf.cert)) && slices.Equal(sortedNames(names), servedNames(s.leaf.cert)) {
		return nil
	}
	if signed {
		// The certificate before this one was signed by the same CA: nothing of an older one is served any more.
		s.old = nil
	}
	s.leaf, err = newLeaf(s.signer, names, now)
	return err
}

func (s *state) nextStep() time.Time {
	next := renewAt(s.leaf.cert)
	ca := renewAt(s.signer.cert)
	if s.next != nil {
		ca = issuedAt(s.next.cert).Add(Settle)
	}
	if ca.Before(next) {
		return ca
	}
	return next
}

func (s *state) encode() map[string][]byte {
	bundle := slices.Clone(s.signer.certPEM)
	data := map[string][]byte{SignerKey: s.signer.keyPEM, CertKey: s.leaf.certPEM, PrivateKeyKey: s.leaf.keyPEM}
	if s.next != nil {
		bundle = append(bundle, s.next.certPEM...)
		data[NextKey] = s.next.keyPEM
	}
	for _, cert := range s.old {
		bundle = append(bundle, certPEM(cert.Raw)...)
	}
	data[BundleKey] = bundle
	return data
}

func issuedAt(cert *x509.Certificate) time.Time { return cert.NotBefore.Add(backdate) }

// renewAt is two thirds into a certificate's life.
func renewAt(cert *x509.Certificate) time.Time {
	issued := issuedAt(cert)
	return issued.Add(cert.NotAfter.Sub(issued) * 2 / 3)
}

func newCA(now time.Time) (*pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "bullpen-office-ca", SerialNumber: now.UTC().Format(time.RFC3339)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(CALife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return newPair(template, nil)
}

func newLeaf(ca *pair, names []string, now time.Time) (*pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "bullpen-office"},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(LeafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ca.cert.NotAfter.Before(template.NotAfter) {
		template.NotAfter = ca.cert.NotAfter
	}
	for _, name := range sortedNames(names) {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return newPair(template, ca)
}

// newPair makes a key and a certificate of it, signed by the CA, or by itself without one.
func newPair(template *x509.Certificate, ca *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	parent, signingKey := template, key
	if ca != nil {
		parent, signingKey = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signingKey)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate just made: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return &pair{cert: cert, key: key, certPEM: certPEM(der), keyPEM: keyPEM}, nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// certificates reads a PEM bundle and leaves out what is none.
func certificates(bundle []byte) []*x509.Certificate {
	var list []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			list = append(list, cert)
		}
	}
	return list
}

func readKey(keyPEM []byte) *ecdsa.PrivateKey {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil
	}
	key, _ := parsed.(*ecdsa.PrivateKey)
	return key
}

func matches(cert *x509.Certificate, keyPEM []byte) bool {
	key := readKey(keyPEM)
	return key != nil && key.PublicKey.Equal(cert.PublicKey)
}

func readPair(cert *x509.Certificate, keyPEM []byte) *pair {
	return &pair{cert: cert, key: readKey(keyPEM), certPEM: certPEM(cert.Raw), keyPEM: keyPEM}
}

// sortedNames lists DNS names and addresses in one canonical order, each once.
func sortedNames(names []string) []string {
	sorted := make([]string, 0, len(names))
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			name = ip.String()
		}
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func servedNames(cert *x509.Certificate) []string {
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return sortedNames(names)
}
