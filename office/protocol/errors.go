package protocol

import (
	"errors"
	"fmt"
)

// This file holds what can go wrong on the wire: the error codes, the error
// message, and the Go error that Decode reports and an answer is made from.

// Code says in one word what went wrong. The other side decides by the code;
// the sentence beside it is for people.
type Code string

// The error codes. Only those that say so end the connection.
const (
	// CodeMalformed answers a frame that is no envelope at all: not JSON, a key
	// twice, not UTF-8, too large, too deep, or without an id or a type.
	CodeMalformed Code = "malformed"
	// CodeUnknownType answers a type that this version does not know.
	CodeUnknownType Code = "unknown_type"
	// CodeInvalidMessage answers a payload that does not fit its type.
	CodeInvalidMessage Code = "invalid_message"
	// CodeUnauthenticated answers a first message that is not [Hello]; the
	// connection closes.
	CodeUnauthenticated Code = "unauthenticated"
	// CodeAuthFailed answers a [Hello] with a wrong handle or token; the
	// connection closes with [CloseAuthFailed].
	CodeAuthFailed Code = "auth_failed"
	// CodeVersionMismatch answers a [Hello] of another protocol version; the
	// connection closes with [CloseVersionMismatch].
	CodeVersionMismatch Code = "version_mismatch"
	// CodeReplaced is the last message on a connection whose person connected
	// anew; the connection closes with [CloseReplaced].
	CodeReplaced Code = "replaced"
	// CodeUnknownItem says the work item does not exist or is someone else's.
	CodeUnknownItem Code = "unknown_item"
	// CodeNotFound says something other than a work item does not exist.
	CodeNotFound Code = "not_found"
	// CodeInvalid says the message is well formed and asks for something that
	// is not possible now.
	CodeInvalid Code = "invalid"
	// CodeUnsupported says this office, or this team, does not do that.
	CodeUnsupported Code = "unsupported"
	// CodeFailed says the office tried and could not; trying again may help.
	CodeFailed Code = "failed"
)

func (Code) values() []string {
	return []string{
		string(CodeMalformed), string(CodeUnknownType), string(CodeInvalidMessage),
		string(CodeUnauthenticated), string(CodeAuthFailed), string(CodeVersionMismatch),
		string(CodeReplaced), string(CodeUnknownItem), string(CodeNotFound),
		string(CodeInvalid), string(CodeUnsupported), string(CodeFailed),
	}
}

// Codes returns every error code.
func Codes() []Code {
	var codes []Code
	for _, c := range Code("").values() {
		codes = append(codes, Code(c))
	}
	return codes
}

// Error is the answer to a request that failed and to a message that was not
// understood. Sent by either side; it takes no answer, not even an error.
type Error struct {
	// Code is for the program that reads the answer.
	Code Code `json:"code"`
	// Message is for the person who reads the program's log.
	Message string `json:"message"`
}

// Type returns TypeError.
func (Error) Type() Type { return TypeError }

// Err returns the message as a Go error of type *WireError.
func (e Error) Err() error { return &WireError{Code: e.Code, Message: e.Message} }

// WireError is a failure that the other side is told about.
type WireError struct {
	// Code is the error code the answer carries.
	Code Code
	// Message is a sentence for people. It names the field, and never repeats
	// a value that could be a secret.
	Message string
	// Path is the place of the offending field in the frame, such as
	// payload.links[0].url; empty when the failure is not about one field.
	Path string
	// RequestID is the id of the frame that failed; empty when none was read.
	RequestID string
}

// Error returns the code and the sentence.
func (e *WireError) Error() string { return string(e.Code) + ": " + e.Message }

// Reply returns the frame, with the given id, that tells the sender.
func (e *WireError) Reply(id string) Frame {
	return Frame{ID: id, ReplyTo: e.RequestID, Message: Error{Code: e.Code, Message: e.Message}}
}

// Errorf makes a WireError from a code and a sentence.
func Errorf(code Code, format string, args ...any) *WireError {
	return &WireError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ErrTooLarge is what Encode returns, wrapped, for a frame over MaxFrame. The
// sender has to shorten the message; the connection is fine.
var ErrTooLarge = errors.New("message is larger than a frame may be")
