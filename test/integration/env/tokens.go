package env

// This file has tokens of service accounts, real ones and ones whose time is over.

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Token makes a service account, if there is none of that name yet, and gives a token of it that lasts an hour.
func (e *Env) Token(t testing.TB, namespace, account string) string {
	t.Helper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := e.Client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("no service account %s/%s: %v", namespace, account, err)
	}
	seconds := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := e.Client.SubResource("token").Create(t.Context(), object, request); err != nil {
		t.Fatalf("no token of the service account %s/%s: %v", namespace, account, err)
	}
	return request.Status.Token
}

// Expired gives a token that is like this one, but ended a minute ago, signed with the API server's own key.
func (e *Env) Expired(t testing.TB, token string) string {
	t.Helper()
	return e.signed(t, token, func(claims map[string]any) {
		now := time.Now().Unix()
		claims["iat"], claims["nbf"], claims["exp"] = now-3600, now-3600, now-60
	})
}

// Reissued gives a token that is like this one and as valid, signed with the API server's own key: what shows that Expired differs from a
// good one in nothing but its time.
func (e *Env) Reissued(t testing.TB, token string) string {
	t.Helper()
	return e.signed(t, token, func(map[string]any) {})
}

func (e *Env) signed(t testing.TB, token string, change func(claims map[string]any)) string {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatal("the token is no JSON web token")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&claims); err != nil {
		t.Fatal(err)
	}
	change(claims)
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	payload := parts[0] + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(payload))
	r, s, err := ecdsa.Sign(rand.Reader, e.signingKey(t), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64) // of ES256: both numbers, 32 bytes each
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return payload + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// signingKey is the key with which the API server signs tokens of service accounts.
func (e *Env) signingKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.plane.ControlPlane.GetAPIServer().CertDir, "sa-signer.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatal("the API server's signing key is no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatalf("the API server signs with a %T, which this does not know", parsed)
	}
	return key
}
