package runtimes

// This file is a server of the Model Context Protocol with one tool, for runtimes to start.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// roleMCP is the role of this server, and mcpSecret the variable whose value its tool tells.
const (
	roleMCP   = "mcp"
	mcpSecret = "PROBE_SECRET"
)

// serveMCP answers requests, a line each, until there are no more.
func serveMCP(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil || len(request.ID) == 0 {
			continue
		}
		type object = map[string]any
		answer := object{"jsonrpc": "2.0", "id": request.ID}
		switch request.Method {
		case "initialize":
			answer["result"] = object{
				"protocolVersion": request.Params.ProtocolVersion, "capabilities": object{"tools": object{}},
				"serverInfo": object{"name": "probe", "version": "1"},
			}
		case "tools/list":
			answer["result"] = object{"tools": []object{{
				"name": "tell", "description": "tells its secret", "inputSchema": object{"type": "object", "properties": object{}},
			}}}
		case "tools/call":
			answer["result"] = object{"content": []object{{"type": "text", "text": "the secret is " + os.Getenv(mcpSecret)}}}
		default:
			answer["error"] = object{"code": -32601, "message": "there is no such method"}
		}
		data, err := json.Marshal(answer)
		if err != nil {
			return
		}
		fmt.Fprintf(out, "%s\n", data)
	}
}
