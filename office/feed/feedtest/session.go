package feedtest

// This file has session objects and messages.

import (
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// Session is a session object in which nothing is null that can be anything else, but for Codex: a session has one runtime.
func Session() feed.Session {
	noor := feed.User{Type: "User", ID: 4711, Login: "noor", Name: new("Noor K."), AvatarURL: "https://pictures.example/noor.png"}
	return feed.Session{
		ID: SessionID,
		Conversation: feed.Conversation{State: feed.ConversationOpen, Interactive: true, Warm: true, Prompting: feed.Prompting{
			BlockedReason: new(feed.BlockedBudgetExhausted), Detail: new("The budget of 2.50 dollars is used."), SurfaceName: new("#lights"),
		}},
		Turn: &feed.Turn{
			ID: Turn, Index: 0, Status: feed.TurnStatusFailed, Reason: new("blocked"), Detail: new("The tower is locked."),
			Stopped:   &feed.Stopped{At: Start.Add(50 * time.Second), By: &noor},
			CreatedAt: Start, StartedAt: new(Start.Add(9 * time.Second)), EndedAt: new(Start.Add(time.Minute)),
			Cost:   feed.Cost{LLM: 12346, CPU: 40, Memory: 8, Fee: 2, Total: 12396},
			Tokens: feed.Tokens{Input: 90, Output: 411, CacheRead: 30100, CacheCreation: 702, Total: 31303, Model: "beacon-4-1"},
		},
		Archived:  &feed.Archived{At: Start.Add(time.Hour), By: &noor},
		CreatedAt: Start, UpdatedAt: Start.Add(time.Minute + 250*time.Millisecond),
		Source: feed.OriginReact,
		Event: &feed.Event{Of: feed.GitHubIssue{
			Action: "commented", Actor: &feed.Actor{Name: "noor", AvatarURL: new(noor.AvatarURL), IsBot: new(false)},
			Repository: "harbour/lights", Number: 12, Title: "East lamp is out <again>", URL: "https://code.example/harbour/lights/issues/12",
		}},
		Cost:        feed.Cost{LLM: 12346, CPU: 40, Memory: 8, Fee: 2, Total: 12396},
		Tokens:      feed.Tokens{Input: 90, Output: 411, CacheRead: 30100, CacheCreation: 702, Total: 31303, Model: "beacon-4-1"},
		Parent:      &feed.Parent{SessionID: new("s1-wick-7f3a")},
		Attribution: feed.Attribution{Type: new(feed.AttributionGitHubUser), ID: new("4711"), User: &noor},
		Budget:      2.5,
		Agent:       &feed.Agent{ID: new("keeper"), Config: agentConfig()},
		Handler:     &feed.Handler{ID: "h-1", AgentName: "Keeper", Service: "github", SHA: "0f0e0d"},
		Environment: feed.Environment{ID: new("env-5"), Source: new(feed.EnvironmentAgent), EnvironmentConfig: environment()},
		Metadata:    feed.Map[string]{"tower": "east"},
		Git:         git(),
		Summary:     &feed.Summary{CreatedAt: new(Start.Add(40 * time.Second)), Description: "Climbing the tower."},
		Permissions: permissions(),
		Skills:      feed.List[feed.Skill]{{Path: "skills/lamps", Repository: repository()}},
		Output:      &feed.Output{JSONSchema: map[string]any{"type": "object"}},
		ClaudeCode:  claudeCodeOptions(),
	}
}

// EmptySession is a session object in which everything is null or empty that may be.
func EmptySession() feed.Session {
	return feed.Session{
		ID: SessionID, Conversation: feed.Conversation{State: feed.ConversationClosed}, CreatedAt: Start, UpdatedAt: Start,
		Source: feed.OriginAPI,
	}
}

// InboxMessages are a message in which nothing is null, and one in which everything is.
func InboxMessages() []feed.InboxMessage {
	return []feed.InboxMessage{
		{
			ID: Message, SessionID: SessionID, TurnID: new(Turn), Body: "See [Image #1].", Author: new("Noor"),
			SenderAttributionType: new(feed.AttributionSlackUser), SenderAttributionID: new("U77"), Status: feed.InboxDelivered,
			Images:    feed.List[feed.Image]{{Index: 1, MediaType: "image/png", SizeBytes: 2048}},
			CreatedAt: Start, DeliveredAt: new(Start.Add(time.Second)), FeedSeq: new(int64(1)),
		},
		{ID: "m-42", SessionID: SessionID, Status: feed.InboxPending, CreatedAt: Start},
	}
}

func repository() *feed.Repository {
	return &feed.Repository{Name: "lights", Owner: new("harbour"), Ref: new("main")}
}

func environment() feed.EnvironmentConfig {
	return feed.EnvironmentConfig{
		Repositories: feed.List[feed.Repository]{*repository()},
		Variables:    feed.List[feed.Variable]{{Name: "TOWER", Value: new("east")}, {Name: "TOWER_KEY"}},
		Compute: feed.Compute{
			CPU:     new(int64(4)),
			Memory:  new(feed.Whole(feed.Memory{GB: new(int64(8)), MB: new(int64(0))})),
			Timeout: new(feed.Whole(feed.TimeLimit{Hours: new(int64(1)), Minutes: new(int64(30)), Seconds: new(int64(0))})),
		},
		Hooks: feed.Hooks{
			PostStart: new("true"), PostClone: new("true"),
			BuildBase:     new(feed.Whole(feed.BuildBase{Run: "make deps", Inputs: &feed.List[string]{"lights/go.sum"}})),
			AfterCheckout: new(feed.Whole(feed.Hook{Run: "make build"})),
			BeforeStart:   new(feed.Text[feed.Hook]("make serve")),
		},
		MCPServers: feed.List[feed.MCPServer]{
			{Ref: "charts"}, {Name: "winds"}, {Name: "tides", Command: "tides-mcp", Args: []string{"--port", "east"},
				Env: map[string]string{"TIDES_KEY": ""}},
			{Name: "stars", URL: "https://stars.example/mcp", Headers: map[string]string{"Authorization": ""}},
		},
	}
}

func permissions() feed.Permissions {
	rule := feed.Whole(feed.AccessRule{Level: feed.LevelWrite, Match: &feed.List[string]{"lights-*"}})
	return feed.Permissions{
		Platform: feed.PlatformAccess{Areas: feed.Map[feed.Access]{
			"sessions": {One: feed.Text[feed.AccessRule](feed.LevelRead)}, "secrets": {One: rule},
			"configs": {Many: feed.List[feed.StringOr[feed.AccessRule]]{feed.Text[feed.AccessRule](feed.LevelDelete), rule}},
		}},
		GitHub: feed.GitHubPermissions{
			Permissions:  new(feed.Whole(feed.Map[string]{"contents": "write"})),
			Repositories: &feed.List[string]{"harbour/lights"},
		},
	}
}

func claudeCodeOptions() *feed.ClaudeCodeOptions {
	return &feed.ClaudeCodeOptions{
		Model: "beacon-4-1", Effort: new("high"), FallbackModel: new("beacon-3"), MaxTurns: new(int64(40)),
		Settings: &feed.SettingsFile{Path: ".keeper/settings.json", Repository: repository()}, Prompt: new("Swap the lamp <east> & log it."),
	}
}

func agentConfig() feed.AgentConfig {
	return feed.AgentConfig{
		About: feed.AgentAbout{
			Version: "v1", Kind: feed.KindAgent, Name: new("Keeper"), Description: new("Keeps the lamps lit."), Enabled: true,
			Metadata: feed.AgentMetadata{Labels: feed.List[string]{"night"}, Annotations: feed.Map[string]{"tower": "east"}},
		},
		Trigger: &feed.Trigger{React: reactTrigger()},
		Input:   &feed.AgentInput{JSONSchema: map[string]any{"type": "object"}, Message: new("Look at {{issue.title}}.")},
		Session: feed.SessionConfig{
			Budget:     feed.BudgetConfig{Session: new(2.5), Day: new(10.0), Week: new(40.0), Month: new(120.0)},
			ClaudeCode: claudeCodeOptions(), Conversation: feed.ConversationConfig{Interactive: true},
			Environment: feed.Whole(environment()), Metadata: feed.Map[string]{"tower": "east"},
			Output: &feed.Output{JSONSchema: map[string]any{"type": "object"}}, Permissions: permissions(),
			Skills: feed.List[feed.Skill]{{Path: "skills/lamps", Repository: repository()}},
		},
	}
}

func reactTrigger() *feed.ReactTrigger {
	some, scope := feed.List[string]{"east", "west"}, feed.WatchScope{Include: feed.List[string]{"lights"},
		Exclude: feed.List[string]{"charts"}}
	by := feed.WatchedBy{
		Users: feed.Accounts{Include: feed.Included{All: new(true)}, Exclude: feed.List[string]{"ghost"}},
		Bots:  feed.Accounts{Include: feed.Included{Names: some}, Short: true}, Teams: feed.List[string]{"keepers"},
	}
	short := feed.WatchScope{Include: some, Short: true}
	return &feed.ReactTrigger{
		CheckRun:    &feed.CheckRunWatch{Names: some, Branch: some, On: feed.List[string]{"failed"}, Repositories: scope, For: by},
		Issue:       &feed.IssueWatch{Labels: some, On: feed.List[string]{"opened", "commented"}, Repositories: short, For: by},
		LinearIssue: &feed.LinearIssueWatch{On: feed.List[string]{"opened"}, For: by},
		PullRequest: &feed.PullRequestWatch{
			Base: some, Head: some, Draft: new(false), Labels: some, Paths: some, On: feed.List[string]{"pushed", "review_submitted"},
			Repositories: scope, For: by,
		},
		Push:         &feed.PushWatch{Branch: some, Paths: some, Repositories: scope, For: by},
		Release:      &feed.ReleaseWatch{Tag: some, Prerelease: new(true), On: feed.List[string]{"published"}, Repositories: scope, For: by},
		Sentry:       &feed.SentryWatch{Projects: some, On: feed.List[string]{"metric_alert"}},
		SlackChannel: &struct{}{},
	}
}

func git() *feed.Git {
	return &feed.Git{Repos: feed.List[feed.GitRepo]{{
		FullName: "harbour/lights", LocalCommit: new("c0ffee"),
		LocalUncommittedFiles: feed.List[feed.GitFile]{{Path: "log.md", Status: "modified", Additions: 2, Deletions: 1}},
		RemoteBranch:          new("keeper/lamp"), RemoteCommit: new("c0ffed"),
		Commits: feed.List[feed.GitCommit]{{SHA: "c0ffee", Subject: "Swap the lamp", CommittedAt: Start.Add(30 * time.Second),
			Pushed: true}},
		CommitsTotal: 3,
		PRs: feed.List[feed.GitPR]{{GHPRID: new(int64(990)), Number: 13, Title: new("A new lamp"),
			URL: "https://code.example/harbour/lights/pulls/13"}},
	}}}
}

// Events has an event of every type, with all and with none of what can be null.
func Events() []feed.EventOf {
	actor := &feed.Actor{Name: "noor", AvatarURL: new("https://pictures.example/noor.png"), IsBot: new(false)}
	const url = "https://code.example/x"
	return []feed.EventOf{
		feed.GitHubPullRequest{Action: "review_commented", Actor: actor, Repository: "harbour/lights", Branch: "lamp", Number: 13,
			Title: "A new lamp", URL: url},
		feed.GitHubIssue{Action: "opened", Repository: "harbour/lights", Number: 12, Title: "Dark", URL: url},
		feed.GitHubPush{Actor: actor, Repository: "harbour/lights", Branch: "main", Before: "c0", After: "c1", URL: url},
		feed.GitHubCheckRun{
			Action: "failed", Actor: actor, Repository: "harbour/lights", Branch: new("lamp"), HeadSHA: "c1", Name: "burns",
			Conclusion: new("failure"), PullRequestNumber: new(int64(13)), URL: url,
		},
		feed.GitHubCheckRun{Action: "failed", Repository: "harbour/lights", HeadSHA: "c1", Name: "burns", URL: url},
		feed.GitHubRelease{Action: "published", Actor: actor, Repository: "harbour/lights", Tag: "v2", Name: new("Two"), Prerelease: true,
			URL: url},
		feed.GitHubRelease{Action: "published", Repository: "harbour/lights", Tag: "v2", URL: url},
		feed.LinearIssue{Action: "commented", Actor: actor, Identifier: new("LIT-4"), Number: 4, Title: "Dark", URL: url},
		feed.LinearIssue{Action: "opened", Number: 4, Title: "Dark", URL: url},
		feed.SlackMessage{Action: "app_mention", Actor: actor, ChannelID: "C1", ChannelName: new("lights"), MessageTS: "1.2",
			ThreadTS: new("1.1"), URL: url},
		feed.SlackMessage{Action: "message", ChannelID: "C1", MessageTS: "1.2", URL: url},
		feed.SlackChannelCreated{Actor: actor, ChannelID: "C2", ChannelName: new("harbour"), URL: url},
		feed.SentryAlert{
			Action: "metric_alert", Actor: actor, OrganizationSlug: "harbour", ProjectSlug: new("lights"), Title: new("Dark"), URL: new(url),
		},
		feed.SentryAlert{Action: "issue_alert", OrganizationSlug: "harbour"},
	}
}

// Frames has a frame of every type of the stream, by type.
func Frames() (map[string][]byte, error) {
	s := Session()
	session, err := feed.MarshalSession(&s)
	if err != nil {
		return nil, err
	}
	snapshot, err := feed.AppendSnapshot(nil, 3, session, InboxMessages())
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		feed.FrameSnapshot:      snapshot,
		feed.FrameRecordsAppend: feed.AppendRecords(nil, Encoded()),
		feed.FrameSession:       feed.AppendSession(nil, session),
		feed.FrameDelta: feed.AppendDelta(nil, Turn, feed.Delta{Kind: feed.DeltaText, Text: new("Both <lamps>"),
			OutputTokens: new(int64(7))}),
		feed.FrameHeartbeat: feed.AppendHeartbeat(nil, Start),
		feed.FrameDone:      feed.AppendDone(nil),
		feed.FrameError:     feed.AppendError(nil, "The office is closing."),
	}, nil
}
