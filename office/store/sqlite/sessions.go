package sqlite

// This file keeps sessions, their messages, and the records that the office writes itself.

import "github.com/bullpen-dev/bullpen/office/model"

func (r *reader) Session(id string) (model.Session, error)       { panic("todo") }
func (r *reader) SessionOf(itemID string) (model.Session, error) { panic("todo") }
func (r *reader) Sessions(filter model.SessionFilter, limit int) ([]model.Session, error) {
	panic("todo")
}
func (r *reader) Messages(sessionID string, ids []string) ([]model.Message, error) { panic("todo") }
func (r *reader) Frozen(hash string) ([]byte, error)                               { panic("todo") }
func (r *reader) Emitted(after int64, limit int) ([]model.Emitted, error)          { panic("todo") }
func (t *tx) PutSession(model.Session) error                                       { panic("todo") }
func (t *tx) PutMessage(model.Message) error                                       { panic("todo") }
func (t *tx) PutFrozen(hash string, body []byte) error                             { panic("todo") }
func (t *tx) Emit(*model.Emitted) error                                            { panic("todo") }
func (t *tx) DropEmitted(upTo int64) error                                         { panic("todo") }
