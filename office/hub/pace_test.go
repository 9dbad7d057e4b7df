package hub

// This file tests the account of what a peer sends.

import (
	"testing"
	"time"
)

func TestWhatAPeerMaySend(t *testing.T) {
	for _, test := range []struct {
		name string
		// each frame of that size comes so long after the office read on
		frames, size int
		pause        time.Duration
		// waited is how long the office waited in all, cut at which frame it had enough; 0 is never
		waited time.Duration
		cut    int
	}{
		{name: "a burst is free", frames: 1000, size: 100},
		{name: "a frame beyond the burst waits for its time", frames: 1001, size: 100, waited: 5 * time.Millisecond},
		{name: "a backlog of thousands is slowed and not cut", frames: 20_000, size: 2000, waited: 95 * time.Second},
		{name: "the rate itself is free for ever", frames: 200 * 3600, size: 100, pause: 5 * time.Millisecond},
		{name: "what is large counts for more", frames: 20, size: 1 << 20, waited: 1400 * time.Millisecond},
		{name: "an empty frame counts, too", frames: 1002, size: 0, waited: 10 * time.Millisecond},
		{name: "a flood is cut", frames: 1_000_000, size: 100, waited: 300 * time.Second, cut: 61_001},
		{name: "also one that is only a little too fast", frames: 1_000_000, size: 100, pause: 4 * time.Millisecond, waited: 60 * time.Second, cut: 64_997},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p pace
			now, waited := time.Now(), time.Duration(0)
			for n := 1; n <= test.frames; n++ {
				wait, cut := p.take(now, test.size)
				if cut {
					if n != test.cut {
						t.Errorf("cut at frame %d, not %d", n, test.cut)
					}
					break
				}
				if n == test.frames && test.cut != 0 {
					t.Error("never cut")
				}
				waited += wait
				now = now.Add(wait + test.pause)
			}
			if d := waited - test.waited; d < -10*time.Millisecond || d > 10*time.Millisecond {
				t.Errorf("it was made to wait for %v in all, not %v", waited, test.waited)
			}
		})
	}
}

func TestAPauseStartsThePatienceAnew(t *testing.T) {
	var p pace
	now := time.Now()
	for range 4 { // floods of four minutes, with a pause of a second between them
		for begin := now; now.Sub(begin) < 4*time.Minute; {
			wait, cut := p.take(now, 0)
			if cut {
				t.Fatal("cut, though it paused")
			}
			now = now.Add(wait)
		}
		now = now.Add(time.Second)
	}
}
