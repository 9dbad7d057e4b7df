package controllers

// This file tests a certificate that was given in a folder. The operator's own is tested on a real API server.

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/pki"
)

func TestGivenTLS(t *testing.T) {
	data, _, _, err := pki.Plan(nil, []string{"office.example.com"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	folder := func(without string) string {
		dir := t.TempDir()
		for _, key := range []string{pki.CertKey, pki.PrivateKeyKey, pki.BundleKey} {
			if key == without {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, key), data[key], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	given, err := NewGivenTLS(folder(""))
	if err != nil {
		t.Fatal(err)
	}
	if cert, err := given.GetCertificate(&tls.ClientHelloInfo{}); err != nil || cert == nil {
		t.Errorf("no certificate: %v", err)
	}
	if bundle, err := given.CABundle(); err != nil || string(bundle) != string(data[pki.BundleKey]) {
		t.Errorf("another bundle: %v", err)
	}
	for _, key := range []string{pki.CertKey, pki.PrivateKeyKey, pki.BundleKey} {
		if _, err := NewGivenTLS(folder(key)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s the error is %v", key, err)
		}
	}
}
