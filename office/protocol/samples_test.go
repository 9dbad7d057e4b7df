package protocol

// This file has one frame of every message, as it could come in a day of ada's,
// a developer of the team shop. The page of the protocol shows them.

const (
	sampleItem   = "5d8f8a3e"
	sampleChat   = "c0a1b2c3"
	sampleTicket = "https://tracker.example.com/ACME-12"
	samplePull   = "https://git.example.com/acme/shop/pulls/34"
)

// samples are in the order of Specs.
var samples = []Frame{
	{ID: "a1", Message: Hello{Person: "ada", Token: "the token of ada's agent", ProtocolVersion: Version, AgentVersion: "0.3.0"}},
	{ID: "o1", ReplyTo: "a1", Message: Welcome{
		ProtocolVersion: Version, HeartbeatMs: 15000, Resume: []string{sampleItem},
		Team: Raw(`{"name":"shop","display_name":"Shop","roles":[{"name":"dev","title":"Developer","work":[{"kind":"chore","review":"none"}]}],` +
			`"people":[{"handle":"ada","name":"Ada","role":"dev","runtime":"claude","model":"opus"}],"policies":{"attempts":3,"heartbeat_ms":15000}}`),
		Acts: []Act{{ID: "act-7", Ops: []Raw{Raw(`{"op":"move","ticket":"ACME-12","status":"review"}`)}}},
	}},
	{ID: "offer-5d8f8a3e-1", Message: sampleOffer},
	{ID: "a2", Message: Accept{WorkItemID: sampleItem, Runtime: "claude", Model: "opus"}},
	{ID: "a3", Message: Decline{WorkItemID: sampleItem, Reason: "git is not installed in this pod"}},
	{ID: "a4", Message: Heartbeat{WorkItemID: sampleItem}},
	{ID: "a5", Message: Progress{WorkItemID: sampleItem, Text: "running the tests"}},
	{ID: "a6", Message: Session{WorkItemID: sampleItem, SessionID: "0f3c7b52", Model: "claude-opus-4-1-20250805"}},
	{ID: "a7", Message: Usage{Windows: []UsageWindow{{Name: "five_hour", Utilization: 0.42, ResetsAt: "2026-01-31T12:00:00.000Z"}}}},
	{ID: "a8", Message: Journal{WorkItemID: sampleItem, Text: "The rounding error is in cart.go: prices are floats."}},
	{ID: "a9", Message: Handback{
		WorkItemID: sampleItem, Status: HandbackDone, Summary: "Prices are counted in cents. Open: the old orders.",
		Links: []Link{{URL: samplePull, Title: "Count in cents"}}, ToReview: []string{"pull request acme/shop#34"},
		Usage: []SessionUsage{{Session: "0f3c7b52", Models: map[string]ModelUsage{
			"claude-opus-4-1-20250805": {InputTokens: 812, OutputTokens: 5210, CacheReadTokens: 90311, CacheCreationTokens: 20145, CostUSD: new(0.91)},
		}}},
	}},
	{ID: "a10", Message: Fail{WorkItemID: sampleItem, Reason: "the repository cannot be cloned: permission denied"}},
	{ID: "a11", Message: Ask{To: "bob", Question: "Do old orders keep their rounded prices?", WorkItemID: sampleItem}},
	{ID: "o2", ReplyTo: "a11", Message: AskResult{ID: "q-9b1c", To: "bob", Status: AskPending}},
	{ID: "a12", Message: Answer{QuestionID: "q-9b1c", Answer: "Yes. Only new orders count in cents."}},
	{ID: "a13", Message: Roster{}},
	{ID: "o3", ReplyTo: "a13", Message: RosterResult{
		Members: []Member{
			{Handle: "ada", Name: "Ada", Role: "dev", Title: "Developer", Status: MemberWorking, Current: "Prices are off by a cent"},
			{Handle: "bob", Name: "Bob", Role: "dev", Title: "Developer", Status: MemberPaused, Usage: &MemberUsage{Window: "five_hour", Utilization: 0.97, ResetsAt: "2026-01-31T12:00:00.000Z"}},
		},
		Humans: []RosterHuman{{Name: "Grace"}},
	}},
	{ID: "a14", Message: WorkMade{WorkItemID: sampleItem, Ticket: "ACME-12", PR: &MadePull{Repo: Repo{Owner: "acme", Name: "shop"}, Number: 34, URL: samplePull}}},
	{ID: "a15", Message: WorkList{WorkItemID: sampleItem}},
	{ID: "o4", ReplyTo: "a15", Message: WorkListResult{Items: []WorkRef{
		{ID: sampleItem, Title: "Prices are off by a cent", Status: StateActive, Kind: "ticket", TicketKey: "ACME-12", Current: new(true)}, sampleQueued,
	}}},
	{ID: "a16", Message: WorkStatus{WorkItemIDs: []string{sampleItem, "e7704d11", "gone"}}},
	{ID: "o5", ReplyTo: "a16", Message: WorkStatusResult{Items: []ItemStatus{
		{WorkItemID: sampleItem, State: ItemState(StateActive)}, {WorkItemID: "e7704d11", State: ItemNotYours}, {WorkItemID: "gone", State: ItemUnknown},
	}}},
	{ID: "a17", Message: WorkMove{WorkItemID: sampleQueued.ID, Status: MoveCanceled}},
	{ID: "o6", ReplyTo: "a17", Message: WorkMoveResult{Item: WorkRef{ID: sampleQueued.ID, Title: sampleQueued.Title, Status: StateCanceled}}},
	{ID: "a18", Message: WorkPlace{WorkItemID: sampleQueued.ID, Position: PositionBefore, RelativeTo: "77aa0c55"}},
	{ID: "a19", Message: WorkLink{WorkItemID: sampleChat, Ticket: "ACME-13", Request: "Show prices in yen"}},
	{ID: "a20", Message: WorkFileFor{WorkItemID: sampleChat, Ticket: "ACME-14", Request: "Order new keyboards", Assignee: "Grace Hopper"}},
	{ID: "a21", Message: WorkCheck{WorkItemID: sampleChat, Request: "Show prices in yen"}},
	{ID: "o7", ReplyTo: "a19", Message: WorkLinkResult{
		URL: "https://tracker.example.com/ACME-13", Waiting: true, Work: []WorkRef{sampleQueued},
		Item: WorkRef{ID: "33e0fe21", Title: "Show prices in yen", Status: StateQueued, Kind: "ticket", TicketKey: "ACME-13"},
	}},
	{ID: "a22", Message: WorkQueue{WorkItemID: sampleChat, Title: "Show prices in yen", Body: "Grace needs them for the Osaka launch."}},
	{ID: "o8", ReplyTo: "a22", Message: WorkQueueResult{Item: WorkRef{ID: "33e0fe21", Title: "Show prices in yen", Status: StateQueued, Kind: "task"}, Work: []WorkRef{}}},
	{ID: "a23", Message: WorkAttach{WorkItemID: sampleChat, Target: "acme/shop#34", Confirmed: new(true)}},
	{ID: "o9", ReplyTo: "a23", Message: WorkAttachResult{
		Item: WorkRef{ID: sampleItem, Title: "Prices are off by a cent", Status: StateQueued, Kind: "ticket", PR: "acme/shop#34", PRNumber: new(34)}, Work: []WorkRef{},
		Attached: Attached{PR: &Subject{Type: "pr", Ref: "acme/shop#34", Title: "Count in cents", State: PullOpen}},
	}},
	{ID: "a24", Message: ChatMessage{
		MessageID: "1769851800.0001", Channel: "C024", Thread: "1769851700.0009", Text: "Can you also show prices in yen?",
		Author: Requester{ID: "U7", Name: "Grace"}, Participant: true,
		Files: []File{{ID: "F1", Name: "osaka.png", MIMEType: "image/png", Size: 48211, URL: "https://chat.example.com/files/F1"}},
	}},
	{ID: "o10", ReplyTo: "a24", Message: ChatMessageResult{}},
	{ID: "a25", Message: ChatReport{WorkItemID: sampleItem, Kind: TellResult}},
	{ID: "o11", ReplyTo: "a25", Message: ChatReportResult{Post: true, Requester: "U7", Links: []Link{{URL: sampleTicket, Title: "ACME-12"}}, Threads: []Thread{sampleThread}}},
	{ID: "o12", Message: Reports{Reports: []Report{{
		ID: "report-3", WorkItemID: sampleItem, Kind: ReportBlocked, Text: "Which currency does the Osaka shop bill in?", Links: []Link{}, Direct: "U7",
	}}}},
	{ID: "a26", Message: ReportPosted{WorkItemID: sampleItem, ID: "report-3"}},
	{ID: "o13", Message: Act{ID: "act-8", Ops: []Raw{
		Raw(`{"op":"move","ticket":"ACME-12","status":"review"}`), Raw(`{"op":"comment","ticket":"ACME-12","body":"Ready for review."}`),
	}}},
	{ID: "a27", Message: ActResult{ID: "act-8", Results: []string{"ACME-12 is in review"}, Error: "comment on ACME-12: the tracker answered 503"}},
	{ID: "a28", Message: DocLink{WorkItemID: sampleItem, Doc: sampleDoc, Ticket: "ACME-12"}},
	{ID: "a29", Message: NotesChanged{Change: NoteAdded, Note: "Prices are integers of cents.", WorkItemID: sampleItem}},
	{ID: "a30", Message: DoctorReport{Checks: []DoctorCheck{
		{Name: "Tools install", Status: CheckOK, Detail: "git, go"},
		{Name: "Home has room", Status: CheckFail, Detail: "0.4 % of /home/agent is free", Fix: "give the person's home more storage"},
	}}},
	{ID: "a31", Message: CurrentWork{}},
	{ID: "o14", ReplyTo: "a31", Message: CurrentWorkResult{Text: "ACME-12 Prices are off by a cent (active), acme/shop#34 Count in cents (open)"}},
	{ID: "a32", Message: TicketPrs{HeadRef: "ada/ACME-12-cents", Title: "Count in cents", Body: "Closes ACME-12."}},
	{ID: "o15", ReplyTo: "a32", Message: TicketPrsResult{Ticket: "ACME-12", Status: TicketStatusActive, PRs: []TicketPull{
		{Ref: "acme/shop#34", Number: 34, Title: "Count in cents", URL: samplePull, State: PullOpen, AuthorKind: AuthorAgent},
	}}},
	{ID: "a33", Message: PrList{State: ListOpen, Author: "ada", Limit: 20}},
	{ID: "o16", ReplyTo: "a33", Message: PrListResult{PRs: []ListedPull{{
		Ref: "acme/shop#34", Number: 34, Title: "Count in cents", State: PullOpen, Author: "ada", CI: ChecksSuccess, Mergeable: MergeableClean,
		Review: "approved", Ticket: "ACME-12", UpdatedAt: "2026-01-31T09:30:00.000Z",
	}}}},
	{ID: "a34", Message: CiLog{URL: "https://git.example.com/acme/shop/actions/runs/9/jobs/2", Lines: 50}},
	{ID: "o17", ReplyTo: "a34", Message: CiLogResult{Repo: "acme/shop", Steps: []LogStep{{Name: "test", Lines: []string{"--- FAIL: TestTotal", "FAIL"}, Omitted: 118}}}},
	{ID: "a35", Message: Recall{Query: `rounding "off by a cent" -currency`, With: "Grace", Since: "2026-01-01", Limit: 5}},
	{ID: "o18", ReplyTo: "a35", Message: RecallResult{Moments: []Moment{{
		At: "2026-01-12T16:04:00.000Z", Kind: "ticket.commented", Who: "Grace", Excerpt: "the total is off by a cent when rounding twice",
		Where: &Place{Type: "ticket", Ref: "ACME-12", Title: "Prices are off by a cent", URL: sampleTicket},
	}}, More: true}},
	{ID: "a36", Message: TicketUsage{Ticket: "ACME-12"}},
	{ID: "o19", ReplyTo: "a36", Message: TicketUsageResult{
		Ticket: "ACME-12", Own: sampleTotals, Total: sampleTotals, SubTickets: []SubTicketUsage{},
		ByPerson: []UsageShare{{Key: "ada", Totals: sampleTotals}}, ByModel: []UsageShare{{Key: "claude-opus-4-1-20250805", Totals: sampleTotals}},
		ByKind: []UsageShare{{Key: "ticket", Totals: sampleTotals}},
	}},
	{ID: "o20", ReplyTo: "a4", Message: Ack{}},
	{ID: "o21", ReplyTo: "a36", Message: Error{Code: CodeUnsupported, Message: "this team does not track usage: set usage.trackCost"}},
	{ID: "o22", Message: Ping{}},
	{ID: "a37", ReplyTo: "o22", Message: Pong{}},
}

var (
	sampleQueued = WorkRef{ID: "b2c4d6e8", Title: "Tidy the changelog", Status: StateQueued, Kind: "chore"}
	sampleThread = Thread{Channel: "C024", Thread: "1769851700.0009", Requester: Requester{ID: "U7", Name: "Grace"}, Participant: true}
	sampleDoc    = Doc{ID: "page-81", Title: "How prices are kept", URL: "https://wiki.example.com/page-81"}
	sampleTotals = UsageTotals{InputTokens: 812, OutputTokens: 5210, CacheReadTokens: 90311, CacheCreationTokens: 20145, Tokens: 116478, CostUSD: 0.91, Runs: 1}

	sampleOffer = Offer{
		WorkItem: WorkItem{
			ID: sampleItem, Kind: "ticket", Title: "Prices are off by a cent", Priority: 100, Trigger: TriggerHuman,
			Subject: &SubjectRef{Type: "ticket", Ref: "ACME-12"},
		},
		Context: Context{
			Journal:  []JournalEntry{{At: "2026-01-31T09:30:00.000Z", Author: "Grace", Text: "Totals are off by a cent since Monday. Find out why, and mend it."}},
			Subjects: []Subject{{Type: "ticket", Ref: "ACME-12", Title: "Prices are off by a cent", URL: sampleTicket}},
			Links:    []Link{},
			Feedback: []Feedback{{Actor: "Grace", Kind: FeedbackTicketComment, CommentID: "901", At: "2026-01-31T09:41:00.000Z", Body: "Only since the yen was added, I think."}},
			Wake: &Wake{
				Tickets: []WakeTicket{{
					Key: "ACME-12", Title: "Prices are off by a cent", URL: sampleTicket, Status: string(TicketStatusActive), Assignee: "Ada",
					Comments: []TicketComment{{Author: "Grace", At: "2026-01-31T09:41:00.000Z", Body: "Only since the yen was added, I think."}},
					Why:      Why{Role: WhySubject, Source: "work item"},
				}},
				PRs: []WakePull{}, Docs: []WakeDoc{}, Chats: []WakeChat{},
			},
		},
	}
)
