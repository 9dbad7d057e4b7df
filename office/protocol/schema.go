package protocol

import (
	"bytes"
	_ "embed" // for the schema
)

// This file holds the JSON Schema of the protocol, for those who are not
// written in Go. It is made from the types; see schema_test.go.

//go:generate go test -run ^Test(Schema|Page)IsThatOfTheTypes$ . -update

//go:embed schema/agent-protocol-3.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a frame. What a frame must
// have beyond it (its size, its depth, no name twice) is in the package's own
// documentation.
func Schema() []byte { return bytes.Clone(schema) }
