package office

// This file tests that a transaction which remembers what it read sees what it changes.

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

func TestATransactionThatRemembersSeesWhatItChanges(t *testing.T) {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "office.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	key := model.TeamKey{Namespace: "ns", Name: "shop"}
	person := func(handle, role string) model.Person {
		return model.Person{UID: "uid-" + handle, Key: model.PersonKey{Team: key, Handle: handle}, Role: role}
	}
	it := model.Item{ID: "i", Namespace: "ns", Name: "i", Spec: model.ItemSpec{Team: "shop"}}
	use := model.Usage{InputTokens: 5}
	// Each changes something that was read before.
	steps := []struct {
		name string
		do   func(store.Tx) error
	}{
		{"nothing", func(store.Tx) error { return nil }},
		{"a team comes", func(tx store.Tx) error { return tx.PutTeam(model.Team{Key: key}) }},
		{"the team changes", func(tx store.Tx) error { return tx.PutTeam(model.Team{Key: key, Suspended: true}) }},
		{"a person comes", func(tx store.Tx) error { return tx.PutPerson(person("ada", "dev")) }},
		{"the person gets another role", func(tx store.Tx) error { return tx.PutPerson(person("ada", "ops")) }},
		{"a person comes, in the old role", func(tx store.Tx) error { return tx.PutPerson(person("bob", "dev")) }},
		{"the person goes", func(tx store.Tx) error { return tx.DeletePerson("uid-bob") }},
		{"something is used", func(tx store.Tx) error {
			return tx.AddUsage(model.LedgerEntry{ItemID: "i", Round: 1, Team: key, Person: "ada", Model: "m", Usage: use}, use, time.Unix(1, 0))
		}},
		{"the team goes", func(tx store.Tx) error { return tx.DeleteTeam(key) }},
	}
	// look tells all that is remembered; inRole does so of a plain transaction.
	look := func(r store.Reader, inRole func(role string) ([]model.PersonKey, error)) string {
		team, err := found(r.Team(key))
		people, err2 := r.People(key)
		dev, err3 := inRole("dev")
		used, err4 := r.TeamUsage(key)
		recent, err5 := r.RecentRounds(key)
		return fmt.Sprintf("%+v %v\n%+v %v\n%+v %v\n%+v %v\n%+v %v", team, err, people, err2, dev, err3, used, err4, recent, err5)
	}
	err = st.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.PutItem(&it); err != nil {
			return err
		}
		c := newCache(tx)
		for _, step := range steps {
			if err := step.do(c); err != nil {
				return err
			}
			want := look(tx, func(role string) (keys []model.PersonKey, err error) {
				people, err := tx.People(key)
				for _, p := range people {
					if p.Role == role {
						keys = append(keys, p.Key)
					}
				}
				return keys, err
			})
			for range 2 {
				got := look(c, func(role string) ([]model.PersonKey, error) { return c.InRole(key, role) })
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("after %q, want -, remembered +:\n%s", step.name, diff)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
