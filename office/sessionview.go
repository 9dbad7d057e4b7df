package office

// This file shows a session: it gathers what the store has of it, and makes the contract's session object. What the contract asks for and
// Bullpen does not have is null, never made up.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// sessionView is all that a session object is made of.
type sessionView struct {
	session model.Session
	item    model.Item
	budgets []model.Budget
	frozen  frozen
	event   *feed.Event
	// pulls are the pull requests that the session's agent made.
	pulls []model.Pull
	// warm says that the person's agent is connected.
	warm bool
}

// errNoSession says that there is no session of that id.
var errNoSession = errors.New("no such session")

// viewSession gathers what there is to show of a session, by its id or its item's. It gives errNoSession where there is none.
func (o *Office) viewSession(ctx context.Context, id string) (v sessionView, err error) {
	err = o.store.View(ctx, func(r store.Reader) error {
		s, err := findSession(r, id)
		if err != nil {
			return err
		}
		if s == nil {
			return errNoSession
		}
		v, err = o.gather(r, *s)
		return err
	})
	return v, err
}

// gather reads what a session is shown with.
func (o *Office) gather(r store.Reader, s model.Session) (sessionView, error) {
	v := sessionView{session: s}
	it, err := found(r.Item(s.ItemID))
	if err != nil {
		return v, err
	}
	if it != nil {
		v.item = *it
	}
	key := model.TeamKey{Namespace: s.Namespace, Name: s.Team}
	team, err := found(r.Team(key))
	if err != nil {
		return v, err
	}
	if team != nil {
		v.budgets = team.Usage.Budgets
	}
	if s.Person != "" {
		_, v.warm = o.hub.Get(model.PersonKey{Team: key, Handle: s.Person})
	}
	if v.frozen, err = frozenOf(r, s, v.item, team); err != nil {
		return v, err
	}
	if v.event, err = eventOf(r, v.item); err != nil {
		return v, err
	}
	v.pulls, err = pullsOf(r, v.item)
	return v, err
}

// frozenOf gives what the session was started with, or would be if it was started now.
func frozenOf(r store.Reader, s model.Session, it model.Item, team *model.Team) (f frozen, err error) {
	if s.Frozen != "" {
		body, err := found(r.Frozen(s.Frozen))
		if err != nil {
			return f, err
		}
		if body != nil {
			return f, json.Unmarshal(*body, &f)
		}
	}
	if team == nil {
		team = &model.Team{}
	}
	handle := cmp.Or(s.Person, it.Spec.Person)
	person, err := found(r.PersonByKey(model.PersonKey{Team: it.TeamKey(), Handle: handle}))
	if err != nil {
		return f, err
	}
	if person == nil {
		person = &model.Person{Key: model.PersonKey{Team: it.TeamKey(), Handle: handle}, Role: it.Spec.Role}
	}
	return freeze(*team, *person, it), nil
}

// pullsOf lists the pull requests that the item's agent made.
func pullsOf(r store.Reader, it model.Item) ([]model.Pull, error) {
	refs, err := r.Refs(it.ID)
	if err != nil {
		return nil, err
	}
	var pulls []model.Pull
	for _, ref := range refs {
		if ref.Place.Type != model.RefPull || ref.Role != protocol.WhyCreated {
			continue
		}
		p, err := found(r.Pull(it.TeamKey(), ref.Place.Ref))
		if err != nil {
			return nil, err
		}
		if p != nil {
			pulls = append(pulls, *p)
		}
	}
	return pulls, nil
}

// object is the session object, with the turn that it is to show.
func (v sessionView) object(turn *model.Turn) feed.Session {
	s := v.session
	o := feed.Session{
		ID: s.ID, CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(), Source: s.Source, Event: v.event,
		Conversation: v.conversation(), Turn: turnObject(turn, v.frozen.Person.Model), Cost: costOf(s.Usage),
		Tokens: tokensOf(s.Usage, cmp.Or(s.Model, v.frozen.Person.Model)), Attribution: v.attribution(), Budget: v.budget(), Agent: v.agent(),
		Environment: v.environment(), Metadata: v.metadata(), Git: v.git(), Permissions: noPermissions, Output: nil,
	}
	if s.ParentID != "" {
		o.Parent = &feed.Parent{SessionID: &s.ParentID}
	}
	o.Summary = v.summary()
	o.ClaudeCode, o.Codex = v.runtime()
	return o
}

// summary is what the agent last told of its progress, or when a round ended, what it said of that.
func (v sessionView) summary() *feed.Summary {
	text, at := v.session.Summary, v.session.SummaryAt
	if v.item.Progress != "" && !v.item.ProgressAt.Before(cmp.Or(at, v.session.CreatedAt)) {
		text, at = v.item.Progress, v.item.ProgressAt
	}
	if text == "" {
		return nil
	}
	return &feed.Summary{Description: oneLine(text, maxSummary), CreatedAt: stamp(at)}
}

// maxSummary is the most characters of a summary, which is one line.
const maxSummary = 500

// current is the turn that a session shows: the one that runs or was the last to run, before there is any the one that waits.
func current(s model.Session) *model.Turn {
	if s.Turn != nil {
		return s.Turn
	}
	return s.Pending
}

// encode is the session object as it goes over the wire.
func (v sessionView) encode(turn *model.Turn) ([]byte, error) {
	o := v.object(turn)
	return feed.MarshalSession(&o)
}

func (v sessionView) conversation() feed.Conversation {
	c := feed.Conversation{State: feed.ConversationOpen, Interactive: v.session.Interactive, Warm: v.warm}
	if !v.session.ClosedAt.IsZero() {
		c.State, c.Warm = feed.ConversationClosed, false
	}
	c.Prompting.Enabled = true
	if no := refusal(v.session, v.item, v.budgets); no != nil {
		c.Prompting = feed.Prompting{BlockedReason: &no.reason, Detail: &no.detail}
		if no.surface != "" {
			c.Prompting.SurfaceName = &no.surface
		}
	}
	return c
}

func turnObject(t *model.Turn, usual string) *feed.Turn {
	if t == nil {
		return nil
	}
	o := &feed.Turn{
		ID: t.ID, Index: int64(t.Index), Status: string(t.Status), CreatedAt: t.CreatedAt.UTC(), StartedAt: stamp(t.StartedAt),
		EndedAt: stamp(t.EndedAt), Cost: costOf(t.Usage), Tokens: tokensOf(t.Usage, cmp.Or(t.Model, usual)),
	}
	if t.Status == model.TurnFailed || t.Status == model.TurnCancelled {
		o.Reason = orNil(t.Reason)
	}
	o.Detail = orNil(t.Detail)
	if !t.StoppedAt.IsZero() {
		o.Stopped = &feed.Stopped{At: t.StoppedAt.UTC()} // whoever did it is no account of a code host
	}
	return o
}

// costOf gives the cost in millicents. There is no leg but that of the model: what runs in the cluster is the cluster's.
func costOf(u model.Usage) feed.Cost {
	llm := (u.CostMicroUSD + 5) / 10
	return feed.Cost{LLM: llm, Total: llm}
}

func tokensOf(u model.Usage, modelID string) feed.Tokens {
	return feed.Tokens{
		Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens, CacheCreation: u.CacheCreationTokens, Total: u.Tokens(),
		Model: modelID,
	}
}

// attribution names the sender in chat who began the session. The contract has no word for users of Kubernetes: metadata names them.
func (v sessionView) attribution() feed.Attribution {
	if v.item.Origin == nil || v.item.Origin.Requester.ID == "" {
		return feed.Attribution{}
	}
	kind, id := feed.AttributionSlackUser, v.item.Origin.Requester.ID
	return feed.Attribution{Type: &kind, ID: &id}
}

// unbounded is the budget of a session that no budget bounds, in millionths of a US dollar: more is never counted.
const unbounded = model.MostReported

// budget is the most that the session may spend, in US dollars: the least of the bounds that hold now.
func (v sessionView) budget() float64 {
	least := int64(unbounded)
	for _, b := range v.budgets {
		if b.CostMicroUSD > 0 {
			least = min(least, b.CostMicroUSD)
		}
	}
	return float64(least) / 1e6
}

// The keys of a session's metadata.
const (
	metaNamespace = "namespace"
	metaTeam      = "team"
	metaPerson    = "person"
	metaItem      = "work_item"
	metaItemID    = "work_item_id"
	metaKind      = "kind"
	metaTitle     = "title"
	metaState     = "state"
	metaRequester = "requester"
	metaStoppedBy = "stopped_by"
)

// metadata says what the session is about in Bullpen's own words.
func (v sessionView) metadata() feed.Map[string] {
	s := v.session
	m := feed.Map[string]{}
	for key, value := range map[string]string{
		metaNamespace: s.Namespace, metaTeam: s.Team, metaPerson: s.Person, metaItem: s.Name, metaItemID: s.ItemID, metaKind: v.item.Spec.Kind,
		metaTitle: v.item.Spec.Title, metaState: s.State, metaRequester: v.item.Spec.Requester,
	} {
		if value != "" {
			m[key] = value
		}
	}
	if t := current(s); t != nil && t.StoppedBy != "" {
		m[metaStoppedBy] = t.StoppedBy
	}
	return m
}

// git is what the agent found in its repositories, with the pull requests that it is known to have made.
func (v sessionView) git() *feed.Git {
	if v.session.Git == nil {
		return nil
	}
	git := feed.Git{Repos: make(feed.List[feed.GitRepo], 0, len(v.session.Git.Repos))}
	for _, repo := range v.session.Git.Repos {
		known := map[int]bool{}
		prs := append(feed.List[feed.GitPR]{}, repo.PRs...)
		for _, pr := range prs {
			known[pr.Number] = true
		}
		for _, p := range v.pulls {
			if strings.EqualFold(p.Repo, repo.FullName) && !known[p.Number] {
				prs = append(prs, feed.GitPR{Number: p.Number, Title: orNil(p.Title), URL: p.URL})
			}
		}
		repo.PRs = prs
		git.Repos = append(git.Repos, repo)
	}
	return &git
}

// stamp gives a time in UTC, nil for none.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}
