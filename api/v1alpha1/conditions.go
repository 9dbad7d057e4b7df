package v1alpha1

// This file has the names that users and tools may match on: condition types, reasons, labels and annotations.

// Condition types. They follow kstatus: Ready says that an object is accepted and can do its work, Stalled that a user must
// mend something; on a WorkItem, Complete and Failed tell the end.
const (
	ConditionReady    = "Ready"
	ConditionStalled  = "Stalled"
	ConditionComplete = "Complete"
	ConditionFailed   = "Failed"
	// ConditionRolloutPending says that a person's pod waits to be replaced until its round has ended.
	ConditionRolloutPending = "RolloutPending"
	// ConditionDoctor sums a person's own checks up.
	ConditionDoctor = "DoctorOK"
	// ConditionBudgetWarning says that a usage budget of the object is nearly used up, or more. It goes away by itself.
	ConditionBudgetWarning = "BudgetWarning"
	// ConditionEvents says whether the office takes a team's events; it is there where the team declares events.
	ConditionEvents = "EventsReady"
)

// Reasons of a WorkItem's conditions.
const (
	// ReasonAccepted: the item can be offered, or was.
	ReasonAccepted = "Accepted"
	// ReasonTeamNotFound, ReasonPersonNotFound, ReasonRoleNotFound: the object named does not exist yet; heals by itself.
	ReasonTeamNotFound   = "TeamNotFound"
	ReasonPersonNotFound = "PersonNotFound"
	ReasonRoleNotFound   = "RoleNotFound"
	// ReasonNobodyInRole: the team has the role, but no person of it.
	ReasonNobodyInRole = "NobodyInRole"
	// ReasonDependencyPending: another item must be done first.
	ReasonDependencyPending = "DependencyPending"
	// ReasonDependencyNotFound: an item named in dependsOn does not exist yet.
	ReasonDependencyNotFound = "DependencyNotFound"
	// ReasonDependencyFailed: an item named in dependsOn was canceled, or deleted before it was done.
	ReasonDependencyFailed = "DependencyFailed"
	// ReasonDependencyCycle: the item waits for itself.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonBudgetExhausted: a usage budget leaves no room for a further round.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonDone, ReasonSilent: the hand-back finished the item, with and without a result.
	ReasonDone   = "Done"
	ReasonSilent = "Silent"
	// ReasonWaiting: the hand-back waits for something.
	ReasonWaiting = "Waiting"
	// ReasonBlocked: the hand-back says that the agent is stuck.
	ReasonBlocked = "Blocked"
	// ReasonNothingToReview: a hand-back said done, but nothing was there to review.
	ReasonNothingToReview = "NothingToReview"
	// ReasonAttemptsExhausted: the item failed as often as it may.
	ReasonAttemptsExhausted = "AttemptsExhausted"
	// ReasonRoundsLost: too many rounds ended without a hand-back.
	ReasonRoundsLost = "RoundsLost"
	// ReasonCanceled: a user canceled the item.
	ReasonCanceled = "Canceled"
	// ReasonMoved: the agent moved the item itself.
	ReasonMoved = "Moved"
	// ReasonBudgetStopped: a usage budget ended the item's round.
	ReasonBudgetStopped = "BudgetStopped"
	// ReasonStopped: somebody stopped the session; the item waits for what they say next.
	ReasonStopped = "Stopped"
)

// Reasons of the condition BudgetWarning, on every kind.
const (
	// ReasonBudgetNearlyUsed: usage has reached the budget's warnAtPercent.
	ReasonBudgetNearlyUsed = "BudgetNearlyUsed"
	// ReasonBudgetUsedUp: no further round starts in the budget's scope.
	ReasonBudgetUsedUp = "BudgetUsedUp"
	// ReasonCostUnknown: a budget in dollars cannot count some tokens, whose cost nobody knows.
	ReasonCostUnknown = "CostUnknown"
)

// Reasons of a Team's and a Person's conditions.
const (
	// ReasonReady: the team takes work; the person's agent is connected.
	ReasonReady = "Ready"
	// ReasonSuspended: no new rounds start, because the user said so.
	ReasonSuspended = "Suspended"
	// ReasonHandleTaken: an older person of the team has the same handle.
	ReasonHandleTaken = "HandleTaken"
	// ReasonNotOurs: an object with the name of one of the person's exists and was not made by the operator.
	ReasonNotOurs = "ObjectNotOurs"
	// ReasonInvalidPatch: a patch cannot be applied, or breaks what patches must leave alone.
	ReasonInvalidPatch = "InvalidPatch"
	// ReasonSecretUnreadable: the agent's own Secret cannot be read; its pod stays as it is.
	ReasonSecretUnreadable = "SecretUnreadable"
	// ReasonPodPending: the pod is being made or started.
	ReasonPodPending = "PodPending"
	// ReasonUnschedulable: no node takes the pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonImagePull: the agent's image cannot be pulled.
	ReasonImagePull = "ImagePullFailed"
	// ReasonContainerConfig: the container cannot be made, mostly for want of a Secret.
	ReasonContainerConfig = "ContainerConfigError"
	// ReasonContainerStart: the node cannot start the container.
	ReasonContainerStart = "ContainerStartFailed"
	// ReasonCrashLoop: the agent ends again and again.
	ReasonCrashLoop = "CrashLoop"
	// ReasonVolumePending: the home has no volume yet, has lost it, or cannot grow.
	ReasonVolumePending = "VolumePending"
	// ReasonNodeLost: the pod's node does not answer, so that nobody knows whether the pod still runs.
	ReasonNodeLost = "NodeLost"
	// ReasonPodRefused: the API server refuses an object of the person.
	ReasonPodRefused = "PodRefused"
	// ReasonPodTerminating: the pod is ending.
	ReasonPodTerminating = "PodTerminating"
	// ReasonAgentOffline: the pod runs, but its agent is not connected.
	ReasonAgentOffline = "AgentOffline"
	// ReasonBetweenRounds: a change of the pod waits for the end of the running round.
	ReasonBetweenRounds = "WaitingForRound"
	// ReasonOfficeUnavailable: the office cannot use its store, also for a WorkItem.
	ReasonOfficeUnavailable = "OfficeUnavailable"
	// ReasonEventsAccepted: the office takes events that come with the token.
	ReasonEventsAccepted = "EventsAccepted"
	// ReasonTokenMissing: there is no such Secret or key, or it is empty.
	ReasonTokenMissing = "TokenMissing"
	// ReasonTokenUnreadable: the operator may not read the Secret.
	ReasonTokenUnreadable = "TokenUnreadable"
	// ReasonDoctorChecksFailed, ReasonDoctorChecksPassed: the agent's checks of its environment, in sum.
	ReasonDoctorChecksFailed = "ChecksFailed"
	ReasonDoctorChecksPassed = "ChecksPassed"
)

// Labels and annotations that the operator puts on objects it makes itself, never on a user's.
const (
	// LabelManagedBy is LabelManagedByValue on everything that the operator makes.
	LabelManagedBy      = "app.kubernetes.io/managed-by"
	LabelManagedByValue = "bullpen"
	// LabelPerson and LabelTeam name the Person and the Team that an object was made for.
	LabelPerson = "bullpen.dev/person"
	LabelTeam   = "bullpen.dev/team"
	// LabelComponent says what an object is part of.
	LabelComponent = "app.kubernetes.io/component"
	// AnnotationPodHash is the hash of the pod that the operator wanted when it made one.
	AnnotationPodHash = "bullpen.dev/pod-hash"
	// AnnotationItemID is the id of the item in the office that a WorkItem was made for by the operator.
	AnnotationItemID = "bullpen.dev/item-id"
	// AnnotationOrigin is the chat message that such an item came from, as JSON, so that its requester can be told even by an office whose
	// store was lost.
	AnnotationOrigin = "bullpen.dev/origin"
	// AnnotationHomeOf marks a home that outlives its person, with the person's name, so that it is taken again.
	AnnotationHomeOf = "bullpen.dev/home-of"
)
