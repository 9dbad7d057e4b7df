package office

// This file keeps a transaction from asking for the same again and again: a decision about a team looks at each of its people and items,
// and each of them asks what the team is, who is in it and what it used.

import (
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// cache is a transaction that remembers what it read of teams, until it changes that itself. Nobody else can, while it runs. What it gives
// is shared: nobody may change it.
type cache struct {
	store.Tx
	teams  map[model.TeamKey]*model.Team // nil is none
	people map[model.TeamKey][]model.Person
	// roles are the people by role, each in the order of people.
	roles  map[model.TeamKey]map[string][]model.PersonKey
	used   map[model.TeamKey]model.Usage
	recent map[model.TeamKey]model.Rounds
	// happened is what the transaction did to items, for their sessions; order has their ids as they were touched.
	happened map[string]*happening
	order    []string
}

// happening is what one transaction did to one item.
type happening struct {
	// item is as it was last put, nil where it was not.
	item  *model.Item
	ended []model.Round
	heard []model.Feedback
	noted *model.JournalEntry
	// otherLife is the life of the store that it was restored from.
	otherLife string
}

// of gives what happened to an item, to be added to.
func (c *cache) of(id string) *happening {
	h := c.happened[id]
	if h == nil {
		h = &happening{}
		c.happened[id] = h
		c.order = append(c.order, id)
	}
	return h
}

func (c *cache) PutItem(it *model.Item) error {
	err := c.Tx.PutItem(it)
	if err == nil {
		put := *it
		c.of(it.ID).item = &put
	}
	return err
}

func (c *cache) Bury(id string) error {
	err := c.Tx.Bury(id)
	if err == nil {
		c.of(id).item = nil // it is read again
	}
	return err
}

func (c *cache) PutRound(r model.Round) error {
	err := c.Tx.PutRound(r)
	if err == nil && r.Accepted() && !r.EndedAt.IsZero() {
		h := c.of(r.ItemID)
		h.ended = append(h.ended, r)
	}
	return err
}

func (c *cache) AppendFeedback(f *model.Feedback) (bool, error) {
	added, err := c.Tx.AppendFeedback(f)
	if added && err == nil {
		h := c.of(f.ItemID)
		h.heard = append(h.heard, *f)
	}
	return added, err
}

func (c *cache) AppendJournal(e model.JournalEntry) error {
	err := c.Tx.AppendJournal(e)
	if err == nil {
		c.of(e.ItemID).noted = &e
	}
	return err
}

func newCache(tx store.Tx) *cache {
	return &cache{
		Tx: tx, teams: map[model.TeamKey]*model.Team{}, people: map[model.TeamKey][]model.Person{},
		roles: map[model.TeamKey]map[string][]model.PersonKey{}, used: map[model.TeamKey]model.Usage{}, recent: map[model.TeamKey]model.Rounds{},
		happened: map[string]*happening{},
	}
}

// remembered gives what known has, else what read gives, which known has then.
func remembered[K comparable, V any](known map[K]V, key K, read func(K) (V, error)) (V, error) {
	if v, ok := known[key]; ok {
		return v, nil
	}
	v, err := read(key)
	if err == nil {
		known[key] = v
	}
	return v, err
}

func (c *cache) Team(key model.TeamKey) (model.Team, error) {
	team, err := remembered(c.teams, key, func(key model.TeamKey) (*model.Team, error) { return found(c.Tx.Team(key)) })
	if err != nil {
		return model.Team{}, err
	}
	if team == nil {
		return model.Team{}, store.ErrNotFound
	}
	return *team, nil
}

func (c *cache) People(key model.TeamKey) ([]model.Person, error) {
	return remembered(c.people, key, c.Tx.People)
}

// InRole lists the people of a team who have the role, by handle.
func (c *cache) InRole(key model.TeamKey, role string) ([]model.PersonKey, error) {
	roles, err := remembered(c.roles, key, func(key model.TeamKey) (map[string][]model.PersonKey, error) {
		people, err := c.People(key)
		roles := map[string][]model.PersonKey{}
		for _, p := range people {
			roles[p.Role] = append(roles[p.Role], p.Key)
		}
		return roles, err
	})
	return roles[role], err
}

func (c *cache) TeamUsage(key model.TeamKey) (model.Usage, error) {
	return remembered(c.used, key, c.Tx.TeamUsage)
}

func (c *cache) RecentRounds(key model.TeamKey) (model.Rounds, error) {
	return remembered(c.recent, key, c.Tx.RecentRounds)
}

func (c *cache) PutTeam(team model.Team) error {
	delete(c.teams, team.Key)
	return c.Tx.PutTeam(team)
}

func (c *cache) DeleteTeam(key model.TeamKey) error {
	delete(c.teams, key)
	return c.Tx.DeleteTeam(key)
}

func (c *cache) PutPerson(p model.Person) error {
	c.forgetPeople()
	return c.Tx.PutPerson(p)
}

func (c *cache) DeletePerson(uid string) error {
	c.forgetPeople()
	return c.Tx.DeletePerson(uid)
}

// forgetPeople forgets those of every team: a person may have been in another one.
func (c *cache) forgetPeople() {
	clear(c.people)
	clear(c.roles)
}

func (c *cache) AddUsage(entry model.LedgerEntry, totals model.Usage, at time.Time) error {
	delete(c.used, entry.Team)
	delete(c.recent, entry.Team)
	return c.Tx.AddUsage(entry, totals, at)
}
