package feed

// This file has the MCP servers of an environment, which come in four shapes.

import "encoding/json"

// MCPServer is an MCP server of an environment. Its shape follows what is filled: Ref alone is a name written as a string; with Command it
// is a program, with URL a remote server, with neither a reference by Name. Values of Env and Headers are never shown: they may be secrets.
type MCPServer struct {
	Ref  string
	Name string
	// Command, Args and Env of a program.
	Command string
	Args    []string
	Env     map[string]string
	// URL and Headers of a remote server.
	URL     string
	Headers map[string]string
}

type mcpName struct {
	Name string `json:"name"`
}

type mcpProgram struct {
	Name    string       `json:"name"`
	Command string       `json:"command"`
	Args    List[string] `json:"args"`
	Env     Map[string]  `json:"env"`
}

type mcpRemote struct {
	Name    string      `json:"name"`
	URL     string      `json:"url"`
	Headers Map[string] `json:"headers"`
}

// MarshalJSON writes the shape that is filled.
func (s MCPServer) MarshalJSON() ([]byte, error) {
	switch {
	case s.Command != "":
		return marshal(mcpProgram{s.Name, s.Command, s.Args, s.Env})
	case s.URL != "":
		return marshal(mcpRemote{s.Name, s.URL, s.Headers})
	case s.Ref != "":
		return marshal(s.Ref)
	}
	return marshal(mcpName{s.Name})
}

// UnmarshalJSON reads any of the shapes.
func (s *MCPServer) UnmarshalJSON(data []byte) error {
	*s = MCPServer{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &s.Ref)
	}
	var all struct {
		mcpProgram
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*s = MCPServer{Name: all.Name, Command: all.Command, Args: all.Args, Env: all.Env, URL: all.URL, Headers: all.Headers}
	return nil
}
