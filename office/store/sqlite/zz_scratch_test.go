package sqlite

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/storetest"
)

func TestZZ(t *testing.T) {
	path := os.Getenv("ZZ")
	if path == "" {
		t.Skip()
	}
	_, e := os.Stat(path)
	s := openIndexed(t, path, Options{Readers: 1})
	if e != nil {
		start := time.Now()
		if err := storetest.FillMoments(context.Background(), s, million); err != nil {
			t.Fatal(err)
		}
		fmt.Println("written", time.Since(start))
		s.View(context.Background(), func(r store.Reader) error { return nil })
		fmt.Println("indexed", time.Since(start))
	}
	for _, q := range []model.Recall{
		{Query: "xylophone"}, {Query: storetest.Word(0)}, {Query: storetest.Word(1000)}, {Query: `"needle in a haystack"`},
		{Query: `"` + storetest.Word(0) + " " + storetest.Word(1) + `"`},
		{Query: storetest.Word(2) + " or " + storetest.Word(1)},
		{Query: storetest.Word(0) + " " + storetest.Word(20) + " " + storetest.Word(100)},
		{Query: storetest.Word(1) + " -" + storetest.Word(0)},
	} {
		for _, h := range []string{"ada", "p7", "few"} {
			q.Person, q.Limit = model.PersonKey{Team: storetest.Team, Handle: h}, 20
			var took []time.Duration
			n := 0
			for range 100 {
				start := time.Now()
				if err := s.Store.View(context.Background(), func(r store.Reader) error {
					m, _, err := r.Recall(q)
					n = len(m)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			fmt.Println(h, q.Query, n, took[0], took[50], took[98])
		}
	}
}
