package main

// This file tests what is published of the office.

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

type someCA struct{ bundle string }

func (c *someCA) CABundle() ([]byte, error) {
	if c.bundle == "" {
		return nil, errors.New("there is no CA yet")
	}
	return []byte(c.bundle), nil
}
func (c *someCA) BundleChanged() <-chan struct{} { return nil }

func TestPublish(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	calls := 0
	count := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			calls++
			return c.Get(ctx, key, o, opts...)
		},
	}
	k := fake.NewClientBuilder().WithInterceptorFuncs(count).Build()
	ca := &someCA{}
	p := &publisher{client: k, namespace: "ops", url: "https://bullpen-office.ops.svc:8443", ca: ca}
	has := func(want string) {
		t.Helper()
		found := &corev1.ConfigMap{}
		if err := k.Get(ctx, client.ObjectKey{Namespace: "ops", Name: "bullpen-office"}, found); err != nil {
			t.Fatal(err)
		}
		if found.Data["ca.crt"] != want || found.Data["url"] != "https://bullpen-office.ops.svc:8443" {
			t.Errorf("the ConfigMap has %q, not the CA %q", found.Data, want)
		}
	}
	if err := p.publish(ctx, now); err == nil {
		t.Error("it is published though there is no CA")
	}
	ca.bundle = "first"
	if err := p.publish(ctx, now); err != nil {
		t.Fatal(err)
	}
	has("first")
	// What did not change is not read again for a while.
	calls = 0
	for range 5 {
		if err := p.publish(ctx, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 0 {
		t.Errorf("nothing changed, and it was read %d times", calls)
	}
	ca.bundle = "second"
	if err := p.publish(ctx, now); err != nil {
		t.Fatal(err)
	}
	has("second")
	// Somebody changes it, and later it is mended.
	found := &corev1.ConfigMap{}
	if err := k.Get(ctx, client.ObjectKey{Namespace: "ops", Name: "bullpen-office"}, found); err != nil {
		t.Fatal(err)
	}
	found.Data["ca.crt"] = "forged"
	if err := k.Update(ctx, found); err != nil {
		t.Fatal(err)
	}
	if err := p.publish(ctx, now.Add(publishAgain)); err != nil {
		t.Fatal(err)
	}
	has("second")
}

func TestWhatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "bullpen-office"}, Data: map[string]string{"mine": "yes"}}
	k := fake.NewClientBuilder().WithObjects(theirs).Build()
	p := &publisher{client: k, namespace: "ops", url: "https://x:1", ca: &someCA{"first"}}
	if err := p.publish(t.Context(), time.Now()); !errors.Is(err, errNotOurs) {
		t.Errorf("the error is %v", err)
	}
	found := &corev1.ConfigMap{}
	if err := k.Get(t.Context(), client.ObjectKeyFromObject(theirs), found); err != nil || len(found.Data) != 1 {
		t.Errorf("it has %v, %v", found.Data, err)
	}
}
