package model

// This file tests the ids of sessions, turns, messages and offers: what goes in comes out.

import "testing"

func TestIDsTellWhatTheyAreMadeOf(t *testing.T) {
	const item = "6f0c1c7e-7b1f-4d57-a3c5-3b8c9c1d2e3f"
	id := SessionID("abcdef01", item, 12)
	if got, n, ok := ItemOfSession(id); got != item || n != 12 || !ok {
		t.Errorf("of %s came %s, %d, %v", id, got, n, ok)
	}
	offer := OfferID(item, 7)
	if got, n, ok := RoundOfOffer(offer); got != item || n != 7 || !ok {
		t.Errorf("of %s came %s, %d, %v", offer, got, n, ok)
	}
	if n, ok := FeedbackOfMessage(FeedbackMessageID(id, 41)); n != 41 || !ok {
		t.Errorf("the feedback is %d, %v", n, ok)
	}
	if _, ok := FeedbackOfMessage(AskedMessageID(id, 3)); ok {
		t.Error("what the item asks is taken for feedback")
	}
}

func TestWhatIsNoIDIsNone(t *testing.T) {
	for _, id := range []string{"", "s", "s1", "s1-a", "s1-a-", "x1-a-b", "s0-a-b", "sx-a-b"} {
		if item, n, ok := ItemOfSession(id); ok {
			t.Errorf("%q is taken for session %d of %q", id, n, item)
		}
	}
	for _, id := range []string{"", "offer-", "offer--1", "offer-a", "offer-a-", "offer-a-0", "offer-a-x", "o17"} {
		if item, n, ok := RoundOfOffer(id); ok {
			t.Errorf("%q is taken for round %d of %q", id, n, item)
		}
	}
}
