package storetest

// This file tests items and the questions that are asked about them.

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

func testItemComesBack(t *testing.T, s *suite) {
	whole := full[model.Item]()
	whole.ID = "whole"
	get := func(r store.Reader) (model.Item, error) { return r.Item("whole") }
	missing(t, s, "an item before it is put", get)
	same(t, "the revision of an empty store", read(t, s, store.Reader.Revision), int64(0))
	s.put(t, &whole)
	same(t, "the item", read(t, s, get), whole)
	same(t, "the first revision", whole.Revision, int64(1))

	bare := model.Item{ID: "whole", Namespace: "office", Name: "bare", Links: []protocol.Link{}}
	s.put(t, &bare)
	got := read(t, s, get)
	same(t, "the item without anything", got, bare)
	if got.Links == nil || got.ToReview != nil {
		t.Error("none and empty are not told apart")
	}
	same(t, "the second revision", []int64{bare.Revision, read(t, s, store.Reader.Revision)}, []int64{2, 2})

	odd := item("odd", func(i *model.Item) { i.Progress = "half a rune: \xe2" })
	s.put(t, odd)
	same(t, "text that is not UTF-8", read(t, s, func(r store.Reader) (model.Item, error) { return r.Item("odd") }).Progress,
		"half a rune: \ufffd")
}

func testItemNames(t *testing.T, s *suite) {
	named := func(id string, created int, changes ...func(*model.Item)) *model.Item {
		return item("fix", append(changes, func(i *model.Item) { i.ID, i.CreatedAt = id, after(created) })...)
	}
	live := func(r store.Reader) (model.Item, error) { return r.ItemByName(core.Namespace, "fix") }
	latest := func(r store.Reader) (model.Item, error) { return r.LatestByName(core.Namespace, "fix") }
	missing(t, s, "a name that never was", latest)

	s.put(t, named("one", 0, gone), named("two", 5, gone))
	missing(t, s, "a live item where all are gone", live)
	same(t, "the last one gone", read(t, s, latest).ID, "two")

	s.put(t, named("three", 9))
	same(t, "the live one", []string{read(t, s, live).ID, read(t, s, latest).ID}, []string{"three", "three"})

	// Its object was made again before anyone heard of the deletion of the earlier one.
	s.put(t, named("four", 12))
	same(t, "the newer of two live ones", []string{read(t, s, live).ID, read(t, s, latest).ID}, []string{"four", "four"})
	missing(t, s, "the name in another namespace",
		func(r store.Reader) (model.Item, error) { return r.ItemByName("elsewhere", "fix") })
}

// held gives an item's round to a person.
func held(handle string) func(*model.Item) {
	return func(i *model.Item) {
		i.Assignee, i.Round = handle, &model.Round{ItemID: i.ID, Number: 1, Person: handle}
	}
}

func testCurrent(t *testing.T, s *suite) {
	get := func(r store.Reader) (model.Item, error) { return r.Current(ada) }
	s.put(t, item("idle"))
	missing(t, s, "a round that nobody has", get)
	first := item("first", held("ada"))
	s.put(t, first, item("of-bob", held("bob")))
	s.put(t, item("elsewhere", held("ada"), func(i *model.Item) { i.Spec.Team = other.Name }))
	same(t, "the item", read(t, s, get), *first)
	running := func(r store.Reader) ([]int, error) {
		team, person, err := r.RunningRounds(ada)
		return []int{team, person}, err
	}
	same(t, "running rounds of team and person", read(t, s, running), []int{2, 1})
	busy := func(r store.Reader) ([]string, error) { return r.Busy(core) }
	same(t, "who has a round", read(t, s, busy), []string{"ada", "bob"})

	s.refuse(t, "a second round of ada", func(tx store.Tx) error { return tx.PutItem(item("second", held("ada"))) })
	first.Round = nil
	s.put(t, first)
	missing(t, s, "the round after it ended", get)
	same(t, "running rounds then", read(t, s, running), []int{1, 0})
	same(t, "who has a round then", read(t, s, busy), []string{"bob"})
	s.put(t, item("second", held("ada")))
	same(t, "the next one", read(t, s, get).Name, "second")
	same(t, "running rounds of a team without any", read(t, s, func(r store.Reader) ([]int, error) {
		team, person, err := r.RunningRounds(model.PersonKey{Team: model.TeamKey{Namespace: "none"}})
		return []int{team, person}, err
	}), []int{0, 0})
}

func testCandidates(t *testing.T, s *suite) {
	priority := func(n int32) func(*model.Item) { return func(i *model.Item) { i.Spec.Priority = n } }
	created := func(n int) func(*model.Item) { return func(i *model.Item) { i.CreatedAt = after(n) } }
	notBefore := func(n int) func(*model.Item) { return func(i *model.Item) { i.NotBefore = after(n) } }
	hold := func(reason string) func(*model.Item) {
		return func(i *model.Item) { i.Hold = model.Why{Reason: reason} }
	}
	had := func(handle string) func(*model.Item) { return func(i *model.Item) { i.Assignee = handle } }
	s.put(t,
		item("5-own-low", priority(9)),
		item("1-front", priority(99), func(i *model.Item) { i.Front = true }),
		item("4-role", ofRole("engineer"), priority(5), created(7)),
		item("3-own", priority(5), created(6)),
		item("2-negative", priority(-1), created(50)),
		item("6a-same", priority(10)), item("6b-same", priority(10)),
		item("7-had-by-ada", ofRole("engineer"), had("ada"), priority(11)),
		item("8-waited", priority(12), notBefore(100)),
		item("9-budget", priority(13), hold(model.ReasonBudgetExhausted)),

		item("not-yet", notBefore(130)), item("not-yet-either", ofRole("engineer"), notBefore(120)),
		item("held-and-not-yet", hold("DependencyPending"), notBefore(110)),
		item("held", hold("DependencyPending")),
		item("of-bob", func(i *model.Item) { i.Spec.Person = "bob" }),
		item("of-another-role", ofRole("writer")),
		item("of-no-role", ofRole("")),
		item("had-by-bob", ofRole("engineer"), had("bob")),
		item("running", held("ada")),
		item("gone", gone),
		item("active", inState(protocol.StateActive)), item("done", inState(protocol.StateDone)),
		item("of-another-team", func(i *model.Item) { i.Spec.Team = other.Name }),
		item("of-another-namespace", func(i *model.Item) { i.Namespace = "elsewhere" }),
	)
	var next time.Time
	ask := func(role string, now, limit int) []string {
		t.Helper()
		return names(read(t, s, func(r store.Reader) (items []model.Item, err error) {
			items, next, err = r.Candidates(ada, role, after(now), limit)
			return items, err
		}))
	}
	all := []string{"1-front", "2-negative", "3-own", "4-role", "5-own-low", "6a-same", "6b-same", "7-had-by-ada", "8-waited", "9-budget"}
	same(t, "the candidates", ask("engineer", 100, 50), all)
	same(t, "the next time", next, after(120))
	same(t, "the first two", ask("engineer", 100, 2), all[:2])
	same(t, "without the role", ask("", 100, 50), slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == "4-role" }))
	same(t, "the next time without the role", next, after(130))
	same(t, "a second before", ask("engineer", 99, 50), slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == "8-waited" }))
	same(t, "the next time then", next, after(100))
	ask("engineer", 130, 50)
	same(t, "the next time when all has come", next, time.Time{})
}

// testCandidateLimit has many items that wait: they must not hide those that can run.
func testCandidateLimit(t *testing.T, s *suite) {
	var later []*model.Item
	for n := range 100 {
		later = append(later, item(fmt.Sprintf("later-%02d", n), func(i *model.Item) { i.NotBefore = after(60 + n) }))
	}
	s.put(t, append(later, item("now", func(i *model.Item) { i.Spec.Priority = 7 }))...)
	err := s.View(t.Context(), func(r store.Reader) error {
		items, next, err := r.Candidates(ada, "", after(0), 10)
		same(t, "what can run", names(items), []string{"now"})
		same(t, "when the first of the others can", next, after(60))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testNextHeld(t *testing.T, s *suite) {
	by := func(scope model.BudgetScope) func(*model.Item) {
		return func(i *model.Item) { i.Hold = model.Why{Reason: model.ReasonBudgetExhausted, Scope: scope} }
	}
	team, tied := by(model.BudgetTeam), func(i *model.Item) { i.Place = &model.Rank{Priority: -3, Key: "k"} }
	of := func(handle string) func(*model.Item) { return func(i *model.Item) { i.Spec.Person = handle } }
	held := item("5-young", team, createdAt(9))
	s.put(t, held,
		item("4-old", team, of("bob"), func(i *model.Item) { i.NotBefore = after(100) }),
		item("1-front", team, func(i *model.Item) { i.Front, i.Spec.Priority = true, 99 }),
		item("2-same", team, tied), item("3-same", team, tied, ofRole("engineer")),

		item("of-a-person's-budget", by(model.BudgetPerson)), item("of-an-item's-budget", by(model.BudgetItem)),
		item("free"), item("waiting", func(i *model.Item) { i.Hold.Reason = "DependencyPending" }),
		item("gone", team, gone), item("elsewhere", team, func(i *model.Item) { i.Spec.Team = other.Name }),
	)
	walk := func() (list []string) {
		err := s.View(t.Context(), func(r store.Reader) error {
			it, err := r.NextHeld(core, nil)
			for ; err == nil; it, err = r.NextHeld(core, &it) {
				list = append(list, it.Name)
			}
			return err
		})
		if !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("the walk ended with %v", err)
		}
		return list
	}
	same(t, "what is held", walk(), []string{"1-front", "2-same", "3-same", "4-old", "5-young"})
	held.Hold = model.Why{}
	s.put(t, held)
	same(t, "what is held after one has room", walk(), []string{"1-front", "2-same", "3-same", "4-old"})
}

func testItemsOf(t *testing.T, s *suite) {
	s.put(t,
		item("d-last", func(i *model.Item) { i.Spec.Priority = 9 }),
		item("b-asked"),
		item("c-assigned", ofRole("engineer"), func(i *model.Item) { i.Assignee, i.State = "ada", protocol.StateWaiting }),
		item("a-front", inState(protocol.StateBlocked), func(i *model.Item) { i.Front = true }),
		item("z-done", inState(protocol.StateDone)), item("e-canceled", inState(protocol.StateCanceled)),
		item("gone", gone), item("gone-done", gone, inState(protocol.StateDone)),
		item("of-role", ofRole("engineer")),
		item("of-bob", func(i *model.Item) { i.Spec.Person = "bob" }),
		item("bob-has-it", ofRole("engineer"), func(i *model.Item) { i.Assignee = "bob" }),
	)
	ask := func(all bool, limit int) []string {
		return names(read(t, s, func(r store.Reader) ([]model.Item, error) { return r.ItemsOf(ada, all, limit) }))
	}
	open := []string{"a-front", "b-asked", "c-assigned", "d-last"}
	same(t, "the open ones", ask(false, 50), open)
	same(t, "the first of them", ask(false, 1), open[:1])
	same(t, "all", ask(true, 50), []string{"a-front", "b-asked", "c-assigned", "e-canceled", "z-done", "d-last"})
	same(t, "queued ones", read(t, s, func(r store.Reader) (int, error) { return r.Queued(ada) }), 2)
	same(t, "queued ones of nobody", read(t, s, func(r store.Reader) (int, error) {
		return r.Queued(model.PersonKey{Team: core, Handle: "nobody"})
	}), 0)
}

// testRank has items that were put among those whose place is by priority and age.
func testRank(t *testing.T, s *suite) {
	young := item("c-young", createdAt(9))
	between := func(a, b *model.Item) model.Rank {
		return model.Rank{Priority: a.Rank().Priority, Key: a.Rank().Key + "/" + b.ID}
	}
	old := item("b-old")
	front := item("f-front", func(i *model.Item) { i.Front, i.Spec.Priority = true, 7 })
	put := item("a-put", createdAt(50), func(i *model.Item) {
		r := between(old, young)
		i.Place, i.Spec.Priority = &r, 5
	})
	first := item("d-first", createdAt(60), func(i *model.Item) { i.Place = &model.Rank{Priority: -3} })
	utf8 := item("e-high", func(i *model.Item) { i.Place = &model.Rank{Key: "\U0001F600"} })
	bmp := item("g-high", func(i *model.Item) { i.Place = &model.Rank{Key: "\uFFFD"} }) // before e-high as bytes, not as UTF-16
	s.put(t, young, old, put, first, front, utf8, bmp)
	want := []string{"f-front", "d-first", "b-old", "a-put", "c-young", "g-high", "e-high"}
	for _, all := range []bool{false, true} {
		same(t, "the person's items", names(read(t, s, func(r store.Reader) ([]model.Item, error) { return r.ItemsOf(ada, all, 0) })), want)
	}
	same(t, "the candidates", names(read(t, s, func(r store.Reader) ([]model.Item, error) {
		items, _, err := r.Candidates(ada, "", after(0), 0)
		return items, err
	})), want)
	put.Place = nil
	s.put(t, put)
	same(t, "where it stands by itself", names(read(t, s, func(r store.Reader) ([]model.Item, error) { return r.ItemsOf(ada, false, 0) })),
		[]string{"f-front", "d-first", "b-old", "c-young", "g-high", "e-high", "a-put"})
}

func testCounts(t *testing.T, s *suite) {
	s.put(t,
		item("queued-1"), item("queued-2", ofRole("engineer")), item("active", inState(protocol.StateActive)),
		item("waiting", inState(protocol.StateWaiting)), item("blocked", inState(protocol.StateBlocked)),
		item("done", inState(protocol.StateDone)), item("canceled", inState(protocol.StateCanceled)),
		item("gone", gone), item("elsewhere", func(i *model.Item) { i.Spec.Team = other.Name }),
	)
	same(t, "counts", read(t, s, func(r store.Reader) (map[protocol.WorkItemState]int, error) { return r.CountItems(core) }),
		map[protocol.WorkItemState]int{
			protocol.StateQueued: 2, protocol.StateActive: 1, protocol.StateWaiting: 1, protocol.StateBlocked: 1,
			protocol.StateDone: 1, protocol.StateCanceled: 1,
		})
	unfinished := read(t, s, func(r store.Reader) ([]string, error) { return r.Unfinished(core) })
	slices.Sort(unfinished)
	same(t, "unfinished", unfinished, []string{"active", "blocked", "queued-1", "queued-2", "waiting"})
	live := read(t, s, store.Reader.LiveItems)
	slices.Sort(live)
	same(t, "live", live,
		[]string{"active", "blocked", "canceled", "done", "elsewhere", "queued-1", "queued-2", "waiting"})
}

func testDependents(t *testing.T, s *suite) {
	on := func(names ...string) func(*model.Item) { return func(i *model.Item) { i.Spec.DependsOn = names } }
	ask := func(name string) []string {
		return read(t, s, func(r store.Reader) ([]string, error) { return r.Dependents(core.Namespace, name) })
	}
	a := item("a", on("base", "base", "more"))
	s.put(t, a, item("b", on("base"), inState(protocol.StateBlocked)), item("done", on("base"), inState(protocol.StateDone)),
		item("gone", on("base"), gone), item("elsewhere", on("base"), func(i *model.Item) { i.Namespace = "elsewhere" }))
	same(t, "who depends on base", ask("base"), []string{"a", "b"})
	same(t, "who depends on more", ask("more"), []string{"a"})
	a.Spec.DependsOn = []string{"more"}
	s.put(t, a)
	same(t, "who depends on base after a changed", ask("base"), []string{"b"})
	a.State = protocol.StateCanceled
	s.put(t, a)
	same(t, "who depends on more after a finished", ask("more"), []string{})
	a.State = protocol.StateQueued
	s.put(t, a)
	same(t, "who depends on more after a runs again", ask("more"), []string{"a"})
}

func testTombstones(t *testing.T, s *suite) {
	hashed := func(id string, changes ...func(*model.Item)) *model.Item {
		return item("fix", append(changes, func(i *model.Item) { i.ID, i.Spec.Hash = id, "h" })...)
	}
	bury := func(id string) { t.Helper(); s.update(t, func(tx store.Tx) error { return tx.Bury(id) }) }
	find := func(hash string) func(r store.Reader) (string, error) {
		return func(r store.Reader) (string, error) { return r.Tombstone(core.Namespace, "fix", hash) }
	}
	s.put(t, hashed("deleted", inState(protocol.StateDone), gone), hashed("kept", inState(protocol.StateDone)))
	missing(t, s, "a tombstone of what no TTL removed", find("h"))

	s.put(t, hashed("queued"))
	s.refuse(t, "burying an unfinished item", func(tx store.Tx) error { return tx.Bury("queued") })

	before := read(t, s, store.Reader.Revision)
	bury("kept")
	same(t, "the tombstone", read(t, s, find("h")), "kept")
	missing(t, s, "a tombstone of another spec", find("other"))
	buried := read(t, s, func(r store.Reader) (model.Item, error) { return r.Item("kept") })
	same(t, "the buried item", []any{buried.Gone, buried.State, buried.Revision}, []any{true, protocol.StateDone, before + 1})

	s.put(t, hashed("again", inState(protocol.StateCanceled)))
	bury("again")
	same(t, "the last tombstone", read(t, s, find("h")), "again")

	late := read(t, s, func(r store.Reader) (model.Item, error) { return r.Item("kept") })
	late.Usage.OutputTokens = 7
	s.put(t, &late)
	same(t, "the last tombstone after a late change of the earlier", read(t, s, find("h")), "again")
	back := read(t, s, func(r store.Reader) (model.Item, error) { return r.Item("again") })
	back.Gone = false
	s.put(t, &back)
	same(t, "the tombstone left when the last lives again", read(t, s, find("h")), "kept")
	missing(t, s, "an unknown item", func(r store.Reader) (model.Item, error) { return r.Item("unknown") })
}
