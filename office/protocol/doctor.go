package protocol

// This file holds the checks that only the agent can make, because they are
// about its own pod.

// CheckStatus is how a check went.
type CheckStatus string

// The outcomes of a check.
const (
	// CheckOK found nothing wrong.
	CheckOK CheckStatus = "ok"
	// CheckWarn found something that may become trouble.
	CheckWarn CheckStatus = "warn"
	// CheckFail found something that work will fail on.
	CheckFail CheckStatus = "fail"
)

func (CheckStatus) values() []string {
	return []string{string(CheckOK), string(CheckWarn), string(CheckFail)}
}

// DoctorReport has the checks that an agent made when it started: its tools are
// there, its services answer, its home has room. Sent by the agent; answered by
// [Ack] or [Error]. It replaces the earlier report.
type DoctorReport struct {
	// Checks are all that were made, those that went well too.
	Checks []DoctorCheck `json:"checks"`
}

// DoctorCheck is one check.
type DoctorCheck struct {
	// Name is what was checked, in a few words.
	Name string `json:"name"`
	// Status is how it went.
	Status CheckStatus `json:"status"`
	// Detail is what was found, with the value that is wrong.
	Detail string `json:"detail"`
	// Fix is what to change when it did not go well.
	Fix string `json:"fix,omitzero"`
	// Key is the key of the secret that the check is about.
	Key string `json:"key,omitzero"`
	// Adapter is the adapter that did the checking, where one did.
	Adapter string `json:"adapter,omitzero"`
}

// Type returns TypeDoctorReport.
func (DoctorReport) Type() Type { return TypeDoctorReport }
