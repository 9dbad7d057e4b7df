package feed

// This file has the permissions of the session object: what the session's credentials may touch.

import (
	"encoding/json"
	"fmt"
)

// Permissions say what a session may touch.
type Permissions struct {
	Platform PlatformAccess    `json:"ellipsis"`
	GitHub   GitHubPermissions `json:"github"`
}

// PlatformAccess is what a session may do at the platform's own API: everything, or what Areas names. The zero value is nothing.
type PlatformAccess struct {
	// All is everything. It is written as true, or with AsWord as "all".
	All    bool
	AsWord bool
	// Areas are levels by area. The schema lists the areas.
	Areas Map[Access]
}

// MarshalJSON writes true, "all" or the areas.
func (p PlatformAccess) MarshalJSON() ([]byte, error) {
	switch {
	case p.All && p.AsWord:
		return []byte(`"all"`), nil
	case p.All:
		return []byte("true"), nil
	}
	return marshal(p.Areas)
}

// UnmarshalJSON reads true, "all" or areas.
func (p *PlatformAccess) UnmarshalJSON(data []byte) error {
	*p = PlatformAccess{}
	switch string(data) {
	case "true":
		p.All = true
		return nil
	case `"all"`:
		p.All, p.AsWord = true, true
		return nil
	}
	if len(data) == 0 || data[0] != '{' {
		return fmt.Errorf("permissions.ellipsis is true, \"all\" or an object, not %s", data)
	}
	return json.Unmarshal(data, &p.Areas)
}

// The levels of access.
const (
	LevelRead   = "read"
	LevelWrite  = "write"
	LevelDelete = "delete"
)

// Access is the access to one area: one rule, or with Many several.
type Access struct {
	One  StringOr[AccessRule]
	Many List[StringOr[AccessRule]]
}

// AccessRule grants a level for what matches. As a string it is a level for everything.
type AccessRule struct {
	Level string        `json:"level"`
	Match *List[string] `json:"match"`
}

// MarshalJSON writes the rule or the rules.
func (a Access) MarshalJSON() ([]byte, error) {
	if a.Many != nil {
		return marshal(a.Many)
	}
	return marshal(a.One)
}

// UnmarshalJSON reads a rule or rules.
func (a *Access) UnmarshalJSON(data []byte) error {
	*a = Access{}
	if len(data) > 0 && data[0] == '[' {
		a.Many = List[StringOr[AccessRule]]{}
		return json.Unmarshal(data, &a.Many)
	}
	return json.Unmarshal(data, &a.One)
}

// GitHubReadOnly is the string that stands for permissions to read everything.
const GitHubReadOnly = "read_only"

// GitHubPermissions are those of a session's GitHub token. Permissions is nil for the default, GitHubReadOnly as a string, or levels by
// name. Repositories is nil for the default.
type GitHubPermissions struct {
	Permissions  *StringOr[Map[string]] `json:"permissions"`
	Repositories *List[string]          `json:"repositories"`
}
