package protocol

// This file holds the checks that only the agent can make, because they are
// about its own pod.

// CheckStatus is how a check went.
type CheckStatus string

// The outcomes of a check.
const (
	CheckOK   CheckStatus = "ok"
	CheckWarn CheckStatus = "warn"
	CheckFail CheckStatus = "fail"
)

func (CheckStatus) values() []string {
	return []string{string(CheckOK), string(CheckWarn), string(CheckFail)}
}

// DoctorReport has the checks an agent made when it started: its tools are
// there, its services answer, its home has room. Sent by the agent; answered by
// Ack or Error. It replaces the earlier report.
type DoctorReport struct {
	Checks []DoctorCheck `json:"checks"`
}

// DoctorCheck is one check.
type DoctorCheck struct {
	// Name is what was checked.
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	// Detail is what was found, with the value that is wrong.
	Detail string `json:"detail"`
	// Fix is what to change when it did not go well.
	Fix string `json:"fix,omitzero"`
	// Key is the key of the secret it is about.
	Key string `json:"key,omitzero"`
	// Adapter is set where an adapter did the checking.
	Adapter string `json:"adapter,omitzero"`
}

// Type returns TypeDoctorReport.
func (DoctorReport) Type() Type { return TypeDoctorReport }
