package codex

// This file configures the person's MCP servers. The configuration goes along with the request that opens the thread, so that secrets in
// it are in the memory of the two processes and nowhere else.

import (
	"fmt"
	"regexp"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// mcpServers are the servers in the words of Codex's configuration. References to variables are filled in from env.
func mcpServers(servers []protocol.TeamMCPServer, env []string) (map[string]any, error) {
	all := map[string]any{}
	for _, s := range servers {
		one := map[string]any{}
		if s.URL != "" {
			one["url"] = s.URL
		} else {
			one["command"] = s.Command
			if len(s.Args) > 0 {
				one["args"] = s.Args
			}
		}
		for name, values := range map[string]map[string]string{"env": s.Env, "http_headers": s.Headers} {
			filled, err := fill(values, env)
			if err != nil {
				return nil, fmt.Errorf("the MCP server %s: %w", s.Name, err)
			}
			if len(filled) > 0 {
				one[name] = filled
			}
		}
		all[s.Name] = one
	}
	return all, nil
}

// reference is ${NAME}, or ${NAME:-what it is without the variable}.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// fill puts the values of variables in the place of references.
func fill(values map[string]string, env []string) (map[string]string, error) {
	filled := map[string]string{}
	var missing error
	for name, value := range values {
		filled[name] = reference.ReplaceAllStringFunc(value, func(found string) string {
			parts := reference.FindStringSubmatch(found)
			if value := lookup(env, parts[1]); value != "" {
				return value
			}
			if parts[2] == "" {
				missing = fmt.Errorf("%s refers to the variable %s, which is not in the agent's environment; set it there, or write ${%s:-}",
					name, parts[1], parts[1])
			}
			return parts[3]
		})
	}
	return filled, missing
}
